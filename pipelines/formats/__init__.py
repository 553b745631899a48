"""The formats of agents: what turns a message into samples or log lines, for the normalizers and for the gateway."""
