"""The state of one shard: named segments, and tables of keys that are stored in them."""
