"""Collects the secrets that this process knows, so that no report of an error shows one."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from urllib.parse import urlsplit

from pydantic import BaseModel, SecretStr

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load
from pipelines.contracts.settings.logins.secret_file import line_of

_SECRET = re.compile(r"(?i)secret|password|passwd|token|credential|authorization|api_?key|access_?key")
_URL = re.compile(r"\w+://[^\s'\"]+")


def secret_values() -> list[str]:
    """The secrets of the environment, the command line, the settings, and the files that these name."""
    secrets = [value for name, value in os.environ.items() if _SECRET.search(name)]
    for text in (*sys.argv, *os.environ.values()):
        for url in _URL.findall(text):
            with suppress(ValueError):
                user = urlsplit(url).netloc.rpartition("@")[0]
                secrets += [user, user.partition(":")[2]] if ":" in user else []
    words = [word for each in sys.argv for word in (each.split("=", 1) if each.startswith("--") else [each])]
    for name, value in pairwise(words):
        secrets += [line_of(value)[0]] if name.startswith("--") and name.endswith("-file") else []
        header = value.partition(":")[2].strip() if name == "--header" else ""
        secrets += [line_of(header[1:])[0] if header.startswith("@") else header]
    with suppress(NewnormalError, OSError, ValueError):  # settings that cannot be read have no secrets that were used
        secrets += _held(load())
    return [value for value in secrets if value]


def _held(value: object, name: str = "") -> Iterator[str]:
    """The secrets in a value of the settings, at any depth."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        for field in type(value).model_fields:
            yield from _held(getattr(value, field), field)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _held(each, str(key))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _held(each, name)
    elif isinstance(value, str) and value:
        if name.endswith("_variable"):
            yield os.environ.get(value, "")
        elif name.endswith("_file") or name == "file":
            yield line_of(value)[0]
        elif _SECRET.search(name) and "_file" not in name:
            yield value
        elif "@" in value and "://" in value:
            yield urlsplit(value).netloc.rpartition("@")[0].partition(":")[2]
