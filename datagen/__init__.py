"""Input: a simulator with ground truth, players of recorded series, an agent for this machine."""

import datagen.codes  # noqa: F401  registers them, wherever the package is imported
