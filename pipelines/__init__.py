"""The jobs (normalizer, extractor, detector, sink), their records and settings, and the `newnormal` command."""

import pipelines.contracts.codes  # noqa: F401  registers the error codes, also in Spark's workers
