"""The extractor: computes statistics of each series in event-time windows."""
