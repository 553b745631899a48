"""Logins and encryption, against real servers."""
