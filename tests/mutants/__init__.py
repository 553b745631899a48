"""Mutants: single-line changes of the code that a user would notice, and whether the fast tests notice them."""
