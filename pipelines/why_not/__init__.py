"""Why was nobody alerted? Walks from the machine to the person, and says at which step it ended."""
