"""Mathematics that knows no series: arrays, tails, special functions, calibration."""
