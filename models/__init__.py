"""Bayesian online models on arrays. Imports no Spark, no Kafka, and reads no clock."""
