"""What operators look at: the web console and the terminal's live view."""

import dashboards.codes  # noqa: F401  registers them, wherever the package is imported
