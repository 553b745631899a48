"""Runs the jobs: the driver, restarts after failures, ownership of jobs, the watch over servers, status, the demo."""
