"""A call of a compiled step: its guards, its program, its effects."""
