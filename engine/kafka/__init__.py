"""Kafka: topics, what they hold and how far they reach, and transactions that write each micro-batch once."""
