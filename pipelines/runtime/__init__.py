"""One driver for the jobs, and what keeps them going: restarts, ownership, servers, status, the demo."""
