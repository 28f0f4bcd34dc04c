"""One class per operation; operators and public functions are installed from them."""
