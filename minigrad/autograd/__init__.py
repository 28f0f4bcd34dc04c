"""Derivatives for people: GradManager, functional transforms, gradient checks, debugging."""
