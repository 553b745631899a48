"""Conjugate families and their predictive distributions: one a file."""
