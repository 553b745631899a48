"""Takes secrets out of a text that somebody else wrote, such as a server's answer, in whatever form it repeats them."""

from __future__ import annotations

import base64
import binascii
import html
import json
from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

SHORTEST = 8
"""Characters: so long a part of a secret is hidden wherever it stands; a shorter secret is hidden as a whole."""
_HIDDEN = "***"
_NOT_ALONE = 3
"""A secret of fewer characters is not hidden: it could be anything."""


def redacted(text: str, secrets: Iterable[str | None]) -> str:
    r"""A text with ``***`` for each secret, each of its encodings, and each longer part of one.

    Known are the words of a header (``Bearer KEY``), what ``Basic`` encodes, the parts of a URL; each percent-encoded,
    in base64, hexadecimal, escaped as in JSON and HTML, in small and capital letters.

    >>> redacted("no hook named XyZSecretOfTheHook", ["https://hooks.example/services/T0/XyZSecretOfTheHook"])
    'no hook named ***'
    >>> redacted("no such login me / password-of-me", ["Basic bWU6cGFzc3dvcmQtb2YtbWU="])
    'no such login me / ***'
    >>> redacted('{"path":"\\/services\\/T0\\/Xy', ["https://hooks.example/services/T0/XyZ"])
    '{"path":"***'
    """
    forms = {form for secret in secrets if secret for part in _parts(secret) for form in _encoded(part)}
    small, hidden = _small(text), bytearray(len(text))
    grams = {form[at : at + SHORTEST] for form in map(_small, forms) for at in range(len(form) - SHORTEST + 1)}
    for at in range(len(text) - SHORTEST + 1):
        if small[at : at + SHORTEST] in grams:
            hidden[at : at + SHORTEST] = b"\1" * SHORTEST
    for form in (_small(each) for each in forms if _NOT_ALONE <= len(each) < SHORTEST):
        at = small.find(form)
        while at >= 0:
            hidden[at : at + len(form)] = b"\1" * len(form)
            at = small.find(form, at + 1)
    shown, at = list[str](), 0
    while at < len(text):
        end = hidden.find(0 if hidden[at] else 1, at)
        end = len(text) if end < 0 else end
        shown.append(_HIDDEN if hidden[at] else text[at:end])
        at = end
    return "".join(shown)


def _small(text: str) -> str:
    """The text in small letters, character by character, so that places stay."""
    return "".join(small if len(small := one.lower()) == 1 else one for one in text)


def _parts(secret: str) -> Iterator[str]:
    """What a secret consists of, and itself."""
    yield secret
    for word in secret.split()[1:]:
        yield word
        try:
            decoded = base64.b64decode(word, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
        yield from (decoded, decoded.partition(":")[2])
    try:
        url = urlsplit(secret)
        _ = url.port
    except ValueError:
        return
    if not url.scheme or not url.netloc:
        return
    behind = secret.split("://", 1)[1].partition("/")[2]
    user = url.netloc.rpartition("@")[0]
    yield from (
        behind and f"/{behind}",
        url.path if len(url.path) > 1 else "",
        url.query,
        url.fragment,
        url.password or "",
    )
    yield from (user if ":" in user else "", *(value for _, value in parse_qsl(url.query, keep_blank_values=True)))
    yield from (part for part in url.path.split("/") if len(part) >= SHORTEST)


def _encoded(part: str) -> Iterator[str]:
    """A part of a secret in each form in which a server may repeat it."""
    if len(part) < _NOT_ALONE:
        return
    plain = {part, unquote(part)}
    for form in plain:
        raw = form.encode("utf-8", "surrogatepass")
        escaped = json.dumps(form)[1:-1]
        yield from (form, quote(form), quote(form, safe=""), quote_plus(form))
        yield from (escaped, escaped.replace("/", r"\/"), json.dumps(form, ensure_ascii=False)[1:-1])
        yield from (html.escape(form), html.escape(form).replace("&#x27;", "&#39;"), repr(form)[1:-1], raw.hex())
        if len(raw) < SHORTEST:
            yield base64.b64encode(raw).decode()
            continue
        # base64 within a longer text: three ways to begin, and an end that depends on what follows
        for before in range(3):
            whole = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
            inner = whole[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
            yield from (inner, inner.replace("+", "-").replace("/", "_"))
