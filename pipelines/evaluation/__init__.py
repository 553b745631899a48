"""How good verdicts are: published measures, computed from scores and labels. Knows neither models nor files."""
