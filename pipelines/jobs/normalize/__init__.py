"""The normalizer: what agents write, each in its own format, to the one columnar topic `telemetry`."""
