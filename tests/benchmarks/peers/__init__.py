"""Other stream processors that do the same work on the same topics, each in processes of its own."""
