"""Machines of one role beside one another."""
