"""State of one shard: named segments, and tables of keys in them."""
