"""Reports on a program, in words and pictures."""
