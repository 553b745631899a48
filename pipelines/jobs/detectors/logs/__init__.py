"""The judge of logs: models of how many lines of each template and severity a machine writes in a window."""
