"""Helpers for columns, which know nothing of jobs: packed keys, dictionaries, rounds, partitions."""
