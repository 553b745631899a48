"""One machine's metrics together: what each should be, given the others and what has just been."""
