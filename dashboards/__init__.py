"""What operators look at: the web console and the terminal's live view."""
