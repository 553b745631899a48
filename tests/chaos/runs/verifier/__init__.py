"""An independent count of what a pipeline wrote: it knows the documentation, and none of the pipeline's code."""
