"""The jobs of the chain, a module or a folder each; `pipelines.jobs.links` says how data flow between them."""
