"""What every web server of ours shares: how it listens, and whom it answers."""
