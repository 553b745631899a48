"""Proves what was said: computes an incident and its verdicts again from the log, and compares them bit for bit."""
