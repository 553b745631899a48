"""The `newnormal` command; one module a command, work is done elsewhere."""
