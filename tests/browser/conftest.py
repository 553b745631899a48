"""The browser of the console's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.chromium import chromium

expect.set_options(timeout=30_000)  # a busy machine takes its time


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium; without one the test is skipped."""
    with chromium() as browser:
        yield browser
