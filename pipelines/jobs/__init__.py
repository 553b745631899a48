"""The jobs of the chain, a module or a folder each; `pipelines.jobs.chain` says how data flow between them."""
