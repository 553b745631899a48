"""The test kit."""

from engine.testing.driver import Driven

__all__ = ["Driven"]
