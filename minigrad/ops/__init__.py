"""One class per operation; Variable's operators and the public functions are installed from them."""
