"""The archive: `telemetry` and `logs` as Parquet files by event-time day, kept longer than Kafka keeps messages."""
