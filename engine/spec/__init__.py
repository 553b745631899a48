"""What a job is, as values: records, sources, steps, operators, outputs; and the durations and errors of all layers."""
