"""Checks that ask Kafka: its topics, what comes in, what is refused, late or unread, and what a start would refuse."""
