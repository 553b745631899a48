"""Explains jobs: what a job does, in its user's terms, and what it cost when it ran."""
