"""Dead letters: what jobs could not use, why, and how it is sent again once the cause is mended."""
