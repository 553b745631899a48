"""What messages look like: the columnar log, JSON, dead letters, heartbeats."""
