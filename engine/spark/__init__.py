"""Spark as the distributed, checkpointed runtime of the sharded operator; it moves opaque blobs."""
