"""The job `places`: what telemetry says of where machines are becomes the inferred topology."""
