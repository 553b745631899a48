"""The pages of the documentation name files, headings and modules that exist, and the index names all of them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`((?:engine|models|pipelines|datagen|dashboards|deploy|tests)/[\w/.-]+\.(?:py|ya?ml|json|toml))`")


@cache
def _anchors(page: Path) -> frozenset[str]:
    """The anchors that GitHub gives the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.*)$", text, re.M))
    return frozenset(re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_names_of_modules_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    wrong = [name for name in _CODE.findall(text) if not (ROOT / name).exists()]
    for link in _LINK.findall(text):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if "://" not in link and not (target.exists() and (not anchor or anchor in _anchors(target.resolve()))):
            wrong.append(link)
    assert not wrong


def test_the_index_names_each_page() -> None:
    named = {(DOCS / link.partition("#")[0]).resolve() for link in _LINK.findall((DOCS / "index.md").read_text())}
    assert {page for page in PAGES if page.is_relative_to(DOCS)} - named == {DOCS / "index.md"}
