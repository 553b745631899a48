"""Spark as the distributed, checkpointed runtime of the sharded operator. Spark only moves opaque blobs."""
