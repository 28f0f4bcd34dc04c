"""One class per operation. `table.py` makes operators and public functions from the classes."""
