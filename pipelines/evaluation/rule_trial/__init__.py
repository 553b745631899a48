"""Tries a rule on the past: what it would have removed and added, from what is stored."""
