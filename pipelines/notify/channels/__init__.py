"""The channels: each sends a message to one kind of receiver."""
