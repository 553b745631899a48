"""A machine: its metrics judged together, and the one verdict on it that is joined from theirs."""
