"""The formats of messages: the columnar log, JSON, dead letters, the heartbeat."""
