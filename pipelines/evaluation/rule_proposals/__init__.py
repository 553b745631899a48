"""Proposes rules from labels: what false alarms have in common that no true alarm has."""
