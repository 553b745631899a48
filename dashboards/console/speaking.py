"""Who may say something to the pipeline here, and by what it is written."""

from __future__ import annotations

from fastapi import Request

from dashboards.console.access import Access
from dashboards.console.actions import Actions
from dashboards.console.own_page import refused


class Speaking:
    """Lets operators speak.

    Args:
        actions: Writes what operators say; ``None``: nothing can be said here.
        access: Knows who asks.
    """

    def __init__(self, actions: Actions | None, access: Access) -> None:
        self._actions, self._access = actions, access

    def writer(self, request: Request) -> tuple[Actions, str]:
        """What writes messages, and the name of the operator if a proxy says it.

        Raises:
            NewnormalError: ``ACTION_REFUSED`` if who asks may say nothing here.
        """
        if self._actions is None:
            raise refused(
                self.why_not(request), "a console of `newnormal run`, `newnormal demo` or `newnormal console`"
            )
        if why := self.why_not(request):
            raise refused(why, f"a request with {self._access.header}")
        return self._actions, self.by(request)

    def why_not(self, request: Request) -> str:
        """Why who asks may say nothing here; empty if anything may be said."""
        if self._actions is None:
            return "this console only shows: no pipeline takes messages from it"
        header = self._access.header
        unnamed = bool(header) and not self.by(request) and not self._access.knows(request)
        return f"no proxy names the operator in {header}" if unnamed else ""

    def by(self, request: Request) -> str:
        """The name of the operator, if a proxy says it."""
        return self._access.user(request)
