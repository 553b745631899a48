"""The heartbeat: a message in the log that shows that a partition is idle, so that a replay decides idleness alike."""

HEARTBEAT = b"\0heartbeat"
"""Value of a heartbeat, which only says that its partition is alive; no text, JSON or Arrow stream begins like it."""
