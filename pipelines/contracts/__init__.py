"""The public contracts of the jobs, which other packages may import: records, topics, settings and explanations."""
