"""Numbers, instants, durations and sizes as text: `words` for sentences, `cells` for tables in a terminal."""
