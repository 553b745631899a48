"""When a gauge with a bound will be full: level, slope, and the time of the first crossing, with its uncertainty."""
