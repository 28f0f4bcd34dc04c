"""Formulas, and the loops written for them: one description of arithmetic for every kernel."""
