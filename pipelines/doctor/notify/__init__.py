"""Checks of the process that tells people of incidents."""
