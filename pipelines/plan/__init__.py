"""How large a cluster must be: from a load and measured coefficients to cores, memory, disk and settings."""
