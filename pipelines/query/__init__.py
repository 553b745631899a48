"""SQL over topics: bounded, and live by event-time windows."""
