"""A page of the console in a browser, and what is true of each of them at its end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

WIDE, PHONE = (1440, 860), (390, 844)
"""Width and height of a screen, in pixels."""

_REFUSED = "Failed to load resource"


@contextmanager
def opened(
    browser: Browser,
    url: str,
    request: pytest.FixtureRequest,
    size: tuple[int, int] = WIDE,
    *,
    refusals: bool = False,
    **options: Any,
) -> Iterator[Page]:
    """A page, which in the end is not wider than its screen, has had no error, ran no data and asked no other server.

    Args:
        browser: Chromium.
        url: The console's address; what follows ``#`` is the page.
        request: The test's. `picture` takes one of the page in the end, which is named after it.
        size: Width and height of the screen.
        refusals: Whether the test asks what the console refuses, which a browser logs as errors.
        **options: More of `Browser.new_page`.
    """
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, **options)
    own, wrong = url.partition("#")[0], list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith(own) else None)
    page.goto(url)
    yield page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is not wider than the screen"
    assert page.evaluate("window.hacked") is None
    assert page.locator("main b b, main img, main script").count() == 0
    name, _, screen = request.node.name.removeprefix("test_").rstrip("]").partition("[")
    picture(page, f"{name[:32]}-{screen}", whole=True)
    page.close()
    assert [text for text in wrong if not (refusals and text.startswith(_REFUSED))] == []


def picture(page: Page, name: str, *, whole: bool = False) -> None:
    """Puts a picture of a page into the folder that `NEWNORMAL_SCREENSHOTS` names, for people to look at."""
    if folder := os.environ.get("NEWNORMAL_SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=whole)
