"""How Newnormal runs: embedded servers and the Java artefacts that the servers and Spark need."""
