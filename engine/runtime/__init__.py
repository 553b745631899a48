"""The runtime of a job without Spark: its map side and its shards, from messages to messages."""
