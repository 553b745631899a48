"""The normalizers: turn the formats of agents into the columnar topics `telemetry` and `logs`."""
