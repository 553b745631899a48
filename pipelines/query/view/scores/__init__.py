"""The scores of the state view as series for Prometheus: scraped at the view, or pushed by remote write."""
