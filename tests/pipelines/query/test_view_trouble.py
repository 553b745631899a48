"""A view inside of a console that cannot read: the process goes on, and is told why, once."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.query.view import followed
from pipelines.query.view.followed import Followed
from tests.pipelines.query.view_topics import until


def test_what_lasts_is_logged_once_and_told_to_each_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed, "_AGAIN", 0.01)
    tries = []

    def settings() -> Settings:
        tries.append(1)
        raise OSError("no space left" if len(tries) < 5 else "read-only file system")

    with capture_logs() as said, Followed(settings, "console") as view:
        until(lambda: len(tries) > 9)
        with pytest.raises(NewnormalError) as error:
            view.site()
    assert (error.value.code, error.value.what) == ("VIEW_UNUSABLE", "read-only file system")
    assert [line["reason"] for line in said] == ["no space left", "read-only file system"]
