"""A call of a compiled step: guards, the program found for it, what it leaves behind."""
