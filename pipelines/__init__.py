"""The jobs (normalizer, extractor, detector, sink), their records and settings, and the `newnormal` command."""

import pipelines.codes  # noqa: F401  registers them, wherever the package is imported
