"""The event-time windowing engine on Spark: keys, time, windows, state, columns. Knows nothing of anomalies."""
