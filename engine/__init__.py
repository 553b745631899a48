"""The event-time windowing engine on Spark: keys, time, windows, state, columns. Knows nothing of anomalies."""

import engine.spec.codes  # noqa: F401  registers them, wherever the package is imported
