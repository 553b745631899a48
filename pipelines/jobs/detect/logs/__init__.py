"""What judges logs: the models of how many lines of which template and severity a machine writes."""
