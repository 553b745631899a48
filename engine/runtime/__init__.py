"""The shard of a job and its map side, without Spark: messages in, messages out."""
