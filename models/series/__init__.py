"""One value of one series: what is said of it, and what is learned from it."""
