"""The `newnormal` command: one module per subcommand. They read options and print; other packages do the work."""

import gc

# a start makes 300,000 objects, nearly all of which stay: looking for garbage among them takes a sixth of its CPU time
gc.set_threshold(50_000)
