"""The state view: what the detector believes of each series and its last windows, kept in RocksDB, asked over HTTP."""
