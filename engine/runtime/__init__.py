"""The columnar sharded operator, without Spark: map side, shard, and what runs in it."""
