"""The extractor: statistics of each series in event-time windows."""
