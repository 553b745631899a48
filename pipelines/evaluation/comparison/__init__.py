"""Compares the verdicts of two versions of the chain: which alarms differ, and which version is right."""
