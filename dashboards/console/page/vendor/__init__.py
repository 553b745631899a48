"""Libraries of others that the page uses, unchanged, each with its licence; a package so that they are installed."""
