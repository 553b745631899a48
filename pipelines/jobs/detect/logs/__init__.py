"""Log lines: masked, mined for templates, counted, and judged."""
