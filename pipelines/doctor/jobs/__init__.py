"""Checks of the jobs' checkpoints, locks and versions: what would refuse the next start, and what nobody uses."""
