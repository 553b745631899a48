"""Real servers are restarted, hung and killed under a running pipeline; what comes of it is counted independently."""
