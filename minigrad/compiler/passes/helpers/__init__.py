"""What passes use: no file of this folder is a pass itself."""
