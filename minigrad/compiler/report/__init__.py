"""What a program is, in words and pictures."""
