"""Plans a program on the CPU: one function of machine code for the whole step."""
