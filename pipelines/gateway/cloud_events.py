"""CloudEvents 1.0.2: what of an event stands where, in the JSON format and in HTTP's structured and binary modes."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import orjson

from engine.spec.errors import NewnormalError
from pipelines.gateway.protocol import Body, MalformedError
from pipelines.jobs.operator_messages import LARGEST_MESSAGE

REQUIRED = ("id", "source", "specversion", "type")
"""The attributes that each event has."""
_STRUCTURED = "application/cloudevents"
_VERSION = re.compile(r"1\.\d{1,2}")
_JSON = re.compile(r"[\w.-]+/([\w.-]+\+)?json\s*(;|$)", re.ASCII | re.IGNORECASE)
"""Content types that say that something is JSON."""


def content(body: Body) -> Any:
    """The JSON of a body; of an event whose attributes are headers, the event with the body as its data.

    Raises:
        MalformedError: ``JSON_MALFORMED``; ``CHANGE_INVALID`` if headers have a part of an event only.
    """
    if body.media_type.startswith(_STRUCTURED) or not any(name in body.attributes for name in REQUIRED):
        try:
            return orjson.loads(body.data)
        except ValueError as error:
            raise MalformedError("JSON_MALFORMED", str(error)[:200]) from None
    for name in REQUIRED:
        if name not in body.attributes:
            accepted = ", ".join(f"ce-{each}" for each in REQUIRED)
            raise MalformedError("CHANGE_INVALID", f"the header ce-{name} is missing", accepted)
    try:
        data = _data(body.data, body.content_type)
    except NewnormalError as error:
        raise MalformedError(error.code, error.what) from None
    return {**{name: _decoded(text) for name, text in body.attributes.items()}, "data": data}


def check(event: Mapping[str, Any]) -> None:
    """Refuses an event that has not what each must have.

    Raises:
        NewnormalError: ``CHANGE_INVALID``.
    """
    for name in REQUIRED:
        value = event.get(name)
        if type(value) not in (str, int) or value == "":
            raise NewnormalError("CHANGE_INVALID", f"{name} of the event is missing, or no text")
    if not _VERSION.fullmatch(str(event["specversion"])):
        raise NewnormalError("CHANGE_INVALID", f"specversion is {event['specversion']!r:.60}", "", "1.0")


def name(event: Mapping[str, Any]) -> str:
    """The name of an event among those of all sources, whatever slashes are in its source and its id.

    >>> name({"source": "ci/cart", "id": "17"}), name({"source": "ci", "id": "cart/17"})
    ('ci/cart/17', 'ci/cart%2F17')
    """
    own = str(event["id"]).replace("%", "%25").replace("/", "%2F")
    return f"{event['source']}/{own}"


def data(event: Mapping[str, Any]) -> Any:
    """The data of an event, also those in Base64.

    Raises:
        NewnormalError: ``CHANGE_INVALID`` if these are no Base64, or have more bytes than a change may have;
            ``JSON_MALFORMED`` if they are not what their type says.
    """
    coded = event.get("data_base64")
    if coded is None or event.get("data") is not None:
        return event.get("data")
    try:
        if len(coded) * 3 // 4 > LARGEST_MESSAGE:
            what = f"data_base64 has more than {LARGEST_MESSAGE:,} bytes"
            raise NewnormalError("CHANGE_INVALID", what)
        found = b64decode(coded, validate=True)
    except (TypeError, ValueError):
        raise NewnormalError("CHANGE_INVALID", "data_base64 of the event is no Base64") from None
    return _data(found, str(event.get("datacontenttype") or ""))


def _data(raw: bytes, content_type: str) -> Any:
    """Data by their content type: JSON must be such; of what is called otherwise an object is one, too, the rest text.

    Raises:
        NewnormalError: ``JSON_MALFORMED``.
    """
    if not raw.strip():
        return None
    is_json = _JSON.match(content_type)
    try:
        found = orjson.loads(raw)
    except ValueError as error:
        if is_json:
            raise NewnormalError("JSON_MALFORMED", f"the data of the event: {str(error)[:200]}") from None
        found = None
    return found if is_json or isinstance(found, dict) else raw.decode(errors="replace")


def _decoded(header: str) -> str:
    r"""The text of an attribute, which its header may have in quotation marks, and has percent-encoded.

    >>> _decoded('"a \\" %E2%82%AC"')
    'a " €'
    """
    if len(header) > 1 and header[0] == header[-1] == '"':
        header = re.sub(r"\\(.)", r"\1", header[1:-1])
    return unquote(header)
