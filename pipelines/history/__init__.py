"""History from elsewhere, put before the log: from Prometheus, Elasticsearch or files into the archive."""
