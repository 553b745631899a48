"""Operators in event-time order: records are held until the watermark has passed them, then applied in their order.

So results never depend on the order of arrival, on batches, partitions or shards. Records of one time are taken in
order of their values, column by column by name. A record behind the watermark is late.
"""
