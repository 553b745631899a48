"""Tries routes and other settings of notifications on the past: whom the stored incidents would have paged."""
