"""The compose stack: its files, the checks before a start, and how it is started, watched and stopped."""
