"""What a report of an error must not show: values of options, however they are written, and of the files they name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pipelines.contracts.settings.secret_values import secret_values


@pytest.mark.parametrize(
    "words",
    [
        ["--token-file", "{file}"],
        ["--token-file={file}"],
        ["--header", "X-Key: a=secret-of-mine"],
        ["--header=X-Key: a=secret-of-mine"],
        ["--header", "X-Key: @{file}"],
        ["--header=X-Key: @{file}"],
    ],
)
def test_values_of_options_and_of_their_files_are_secrets(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text("a=secret-of-mine\n")
    monkeypatch.setattr(sys, "argv", ["newnormal", *(word.format(file=file) for word in words)])
    assert "a=secret-of-mine" in secret_values()
