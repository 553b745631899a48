"""Checks of this machine and this installation; they ask no server."""
