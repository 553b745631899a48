"""The former place of `pipelines.serving`, kept for scripts that import from it."""
