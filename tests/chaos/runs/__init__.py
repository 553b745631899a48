"""Chaos: a pipeline under load whose processes are killed, stopped and starved, and the count of what came of it."""
