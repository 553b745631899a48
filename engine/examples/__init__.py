"""Small demonstrations of the engine, each with a plot: ``newnormal example NAME``. They need no Spark."""

NAMES = ("sine", "timetravel", "cards", "stocks", "network")
