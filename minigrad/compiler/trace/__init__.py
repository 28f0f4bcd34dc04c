"""Tracing: a step runs once on Variables without memory, and its operations are recorded."""
