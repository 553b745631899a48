"""The page of the console: static files, complete in themselves; a package so that they are installed."""
