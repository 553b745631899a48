"""Retention: what is older than the policy says is deleted, unless somebody needs it."""
