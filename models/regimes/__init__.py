"""Kinds of news: a surprise that ends, a new normal, an old normal that is back, and silence."""
