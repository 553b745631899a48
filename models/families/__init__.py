"""Conjugate families and their predictive distributions: one per file."""
