"""A real Kafka broker and a real Elasticsearch node as supervised child processes."""
