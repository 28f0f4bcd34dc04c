"""Derivatives for users: functional transforms, gradient checks, debugging."""
