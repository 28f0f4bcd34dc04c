"""Arrays (Storage + layout + dtype) and shape arithmetic."""
