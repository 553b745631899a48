"""The detector: features of metrics and logs in, novelties out."""
