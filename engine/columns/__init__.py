"""Helpers on columns, which know nothing of jobs: keys packed into integers, dictionaries, rounds, partitions."""
