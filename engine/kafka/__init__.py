"""Kafka: topics, their content and offsets, and transactions that write each micro-batch exactly once."""
