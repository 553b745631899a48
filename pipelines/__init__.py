"""The jobs (normalizer, extractor, detector, sink), their records and settings, and the `newnormal` command."""
