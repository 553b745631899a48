"""Log templates: how often each comes, in what mix, and whether one comes that never came."""
