"""Measures how good verdicts are: published measures, data sets, and comparisons with labels and ground truth."""
