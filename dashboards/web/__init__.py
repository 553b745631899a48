"""What every web server of the project shares: how it listens, and whom it answers."""
