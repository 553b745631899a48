"""Savepoints: named copies of the state of jobs, from which they, or jobs of another version, can go on."""
