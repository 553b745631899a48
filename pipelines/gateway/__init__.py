"""The gateway: takes what agents push over HTTP, and answers when Kafka has it. docs/gateway.md is its page."""
