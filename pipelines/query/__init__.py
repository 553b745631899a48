"""SQL over topics: over what they hold now, live by event-time windows, and as standing jobs."""
