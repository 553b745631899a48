"""Input: a simulator with ground truth, players of recorded series, an agent for this machine."""
