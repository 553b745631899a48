"""Mines log templates: masks the variable parts of log lines, finds their templates, and counts lines by template."""
