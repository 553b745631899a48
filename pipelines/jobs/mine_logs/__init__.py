"""Templates of log lines: what varies is masked, lines are mined for templates and counted."""
