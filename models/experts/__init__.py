"""Experts: each predicts the next value of a series from one idea of it; the mixture weighs them."""
