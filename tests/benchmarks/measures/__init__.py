"""What the benchmarks on recorded data measure, with what they compare, and the data."""
