"""What a job will do, in its user's terms, before it runs and with what it cost when it ran."""

from engine.explain.plan import Plan, describe, explain

__all__ = ["Plan", "describe", "explain"]
