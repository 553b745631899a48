"""Versions of the chain: each is a set of jobs with topics, indices and state of its own; one is shown to readers."""
