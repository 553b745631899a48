"""The `newnormal` command: one module per subcommand. They read options and print; other packages do the work."""
