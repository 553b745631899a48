"""No secret stands in what a command writes about an error, in whatever form something repeats it."""

from __future__ import annotations

import base64
import html
import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from engine.explain.redaction import SHORTEST, redacted
from pipelines.cli.guard import guarded

WORD = "s3cr3t+W/rd=of&mine!"


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=SHORTEST, max_size=40),
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=9),
    st.integers(0, 30),
)
def test_no_form_of_a_secret_is_left(secret: str, before: str, cut: int) -> None:
    raw = secret.encode()
    forms = [secret, quote(secret), quote(secret, safe=""), json.dumps(secret), html.escape(secret), raw.hex()]
    forms += [
        raw.hex().upper(),
        secret.upper(),
        json.dumps(secret).replace("/", "\\/"),
        secret[cut:],
        secret[: -cut or None],
    ]
    for form in forms:
        if len(form) < SHORTEST:
            continue
        shown = redacted(before + form + ".", [secret])
        small = form.lower().strip('"')
        parts = {small[at : at + SHORTEST] for at in range(len(small) - SHORTEST + 1)}
        assert not any(part in shown.lower() for part in parts)


@pytest.mark.parametrize("before", ["", "a", "ab", "user:"])
def test_base64_of_a_text_with_the_secret_in_it_is_hidden_but_for_its_ends(before: str) -> None:
    text = base64.b64encode((before + WORD + "\n").encode()).decode()
    shown = redacted(f"sent {text} to x", [WORD])
    assert re.fullmatch(r"sent \S{0,8}\*\*\*\S{0,4} to x", shown)


def test_what_is_no_secret_stays() -> None:
    said = "it answered 404: no such hook"
    assert redacted(said, [None, "", "ab", "Bearer abcdefgh-12345678", "https://h.example/services/XYZ"]) == said


def test_the_trace_of_an_unexpected_error_has_no_secret_of_command_line_environment_or_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "password"
    file.write_text("w0rd-in-the-file\n")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("NEWNORMAL_KAFKA__SASL_PASSWORD", "w0rd-in-the-environment")
    monkeypatch.setenv("NEWNORMAL_ELASTICSEARCH__PASSWORD_FILE", str(file))
    monkeypatch.setenv("NEWNORMAL_ELASTICSEARCH__USER", "me")
    monkeypatch.setattr("sys.argv", ["newnormal", "run", "--elasticsearch", "https://me:w0rd-of-argv@db.example:9200"])
    app = typer.Typer()

    @app.command()
    def fail() -> None:
        raise RuntimeError("https://me:w0rd-of-argv@db.example w0rd-in-the-environment w0rd-in-the-file")

    assert guarded(app, []) == 70
    written = next(tmp_path.glob("newnormal-*.log"))
    assert written.stat().st_mode & 0o777 == 0o600
    for text in (written.read_text(), capsys.readouterr().err):
        assert "w0rd" not in text
        assert "RuntimeError" in text
