"""Kafka: topics, their content and offsets, heartbeats, and transactions that write each micro-batch exactly once."""
