"""Array = Storage + layout + dtype; shape arithmetic."""
