"""Explains jobs: what a job does, in its user's terms, and what it cost when it ran."""

from engine.explain.plan import Plan, describe, explain

__all__ = ["Plan", "describe", "explain"]
