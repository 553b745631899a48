"""How Newnormal runs: embedded servers and the Java artefacts that the servers and Spark need."""

import deploy.codes  # noqa: F401  registers them, wherever the package is imported
