"""The types of settings: each refuses values that could not be used later, and says what it accepts."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from urllib.parse import urlsplit

import polars as pl
from annotated_types import Ge, Le
from pydantic import AfterValidator, BeforeValidator, SecretStr
from pydantic.fields import FieldInfo

from engine.spark.checkpoint_place import checkpoint_place
from engine.spark.hadoop_path import HadoopPath
from engine.spark.hadoop_path import is_address as is_store
from engine.spec.duration import duration_ms, epoch_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts.bounds import bound
from pipelines.contracts.globs import LONGEST, Glob, matches
from pipelines.contracts.records.zone import Zone

_NAME = re.compile(r"(?=.{1,253}$)\w([\w-]*\w)?(\.\w([\w-]*\w)?)*\.?", re.ASCII)
_MEGABYTES = {"m": 1, "g": 1024}
_MOST_MEGABYTES = 1024 * 1024
_MOST_CHARACTERS = 4_000


@dataclass(frozen=True)
class Accepts:
    """Marks a type of setting with the values that it accepts, in words, for error messages and docs/settings.md."""

    text: str


@dataclass(frozen=True)
class Confidential:
    """Marks a type of setting whose values may hold secrets: error messages do not show them."""


def _checked(usable: Callable[[str], bool]) -> AfterValidator:
    def check(text: str) -> str:
        try:
            fine = usable(text)
        except (NewnormalError, ValueError, OverflowError):
            fine = False
        if not fine:
            raise ValueError("not accepted")
        return text

    return AfterValidator(check)


def is_host(text: str) -> bool:
    """True for a host name or an IP address (version 4 or 6).

    Raises:
        ValueError: If the text looks like an IP address but is none.
    """
    if ":" in text or re.fullmatch(r"[0-9.]+", text):
        ipaddress.ip_address(text)
        return True
    return _NAME.fullmatch(text) is not None


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches what listens at a host name or an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def is_ipv4(text: str) -> bool:
    """True for an IP address of version 4.

    >>> is_ipv4("0.0.0.0"), is_ipv4("::1"), is_ipv4("localhost")
    (True, False, False)
    """
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def is_address(text: str) -> bool:
    """True for ``host:port``."""
    host, _, port = text.rpartition(":")
    inner = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    usable = re.fullmatch("[0-9]{1,5}", port) is not None and 0 < int(port) <= 65535
    return usable and (":" in inner) == (inner != host) and is_host(inner)


def _is_series_glob(text: str) -> bool:
    machine, slash, metric = text.strip().partition("/")
    usable = bool(machine and slash and metric) and text == text.strip() and text.isprintable() and len(text) <= LONGEST
    return usable and len(matches(text, pl.Series([""]))) == 1


def _is_url(text: str) -> bool:
    parts = urlsplit(text)
    address = parts.netloc.rpartition("@")[2]
    plain = re.fullmatch(r"[\w./~-]*", parts.path) and not parts.query and not parts.fragment and text.isprintable()
    return parts.scheme in ("http", "https") and is_address(address) and bool(plain)


def _confidential(usable: Callable[[str], bool]) -> AfterValidator:
    def check(secret: SecretStr) -> SecretStr:
        if usable(secret.get_secret_value()):
            return secret
        raise ValueError("not accepted")

    return AfterValidator(check)


def _is_line(text: str) -> bool:
    """True for empty text, or one line without surrounding blanks."""
    return text == text.strip() and len(text) < _MOST_CHARACTERS and text.isprintable()


def is_token(text: str) -> bool:
    """True for nothing, or a secret that is long enough and can stand in a header of HTTP."""
    return re.fullmatch(r"([!-~]{16,200})?", text) is not None


def _megabytes(least: int) -> AfterValidator:
    def usable(text: str) -> bool:
        found = re.fullmatch(r"([0-9]{1,7})([mg])", text)
        return found is not None and least <= megabytes(text) <= _MOST_MEGABYTES

    return _checked(usable)


def megabytes(text: str) -> int:
    """Reads a size such as ``512m`` or ``2g``; returns megabytes of 2^20 bytes."""
    return int(text[:-1]) * _MEGABYTES[text[-1]]


def _store(value: Any) -> Any:
    """An address of a file system of Hadoop as such, before it becomes a path of this machine."""
    if isinstance(value, str) and is_store(value):
        try:
            return checkpoint_place(value, "")
        except NewnormalError as error:
            raise ValueError(error.what) from None
    return value


def _is_folder_or_store(path: Path) -> Path:
    return path if isinstance(path, HadoopPath) else _is_folder(path)


def _is_folder(path: Path) -> Path:
    """Refuses a path that can never become a folder; missing permissions and full disks are found when it is used."""
    try:
        absolute = path.expanduser()
        if str(path) not in ("", ".") and str(path).isprintable() and not is_store(path):
            parents = (absolute, *absolute.parents)
            if next((parent.is_dir() for parent in parents if parent.exists()), True):
                return path
    except (RuntimeError, OSError, ValueError):
        pass
    raise ValueError("not accepted")


def _nothing(value: object) -> object:
    return None if value == "" else value


def _no_flag(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("not accepted")
    return value


def is_web_address(text: str) -> bool:
    """True for an HTTP or HTTPS address, also without a port, with a path, and with a query."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # the host or the port is malformed
        return False
    plain = text.isprintable() and " " not in text and not parts.fragment and port != 0
    return parts.scheme in ("http", "https") and plain and is_host(parts.hostname or "-")


Whole = Annotated[int, BeforeValidator(_no_flag)]
Number = Annotated[float, BeforeValidator(_no_flag)]
_DURATIONS = "e.g. 250ms, 10s, 5m, 1h30m, 7d; at most ten years"
Duration = Annotated[str, _checked(lambda t: duration_ms(t) >= 0), Accepts(f"a duration, {_DURATIONS}")]
Length = Annotated[str, _checked(lambda t: duration_ms(t) > 0), Accepts(f"a duration above 0, {_DURATIONS}")]
Days = Annotated[
    str,
    _checked(lambda t: duration_ms(t) >= 86_400_000),
    Accepts("a duration of at least a day, e.g. 36h, 7d, 30d; at most ten years"),
]
OptionalLength = Annotated[Length | None, BeforeValidator(_nothing), Accepts(f"nothing, or a duration, {_DURATIONS}")]
Time = Annotated[str, _checked(lambda t: epoch_ms(t) is not None), Accepts("ISO 8601, e.g. 2026-11-21T00:00:00Z")]
Heap = Annotated[str, _megabytes(128), Accepts("megabytes or gigabytes, from 128m to 1024g")]
DiskSize = Annotated[str, _megabytes(1), Accepts("megabytes or gigabytes, from 1m to 1024g")]
DriverHeap = Annotated[str, _megabytes(512), Accepts("megabytes or gigabytes, from 512m to 1024g")]
Brokers = Annotated[
    Annotated[str, _checked(lambda t: all(map(is_address, t.split(","))))] | None,
    BeforeValidator(_nothing),
    Accepts("nothing, or host:port, several with commas between them"),
]
Broker = Annotated[
    Annotated[str, _checked(is_address)] | None, BeforeValidator(_nothing), Accepts("nothing, or host:port")
]
Url = Annotated[
    Annotated[str, _checked(_is_url)] | None,
    BeforeValidator(_nothing),
    Accepts("nothing, or http://host:port, or https://host:port"),
]
WebAddress = Annotated[
    Annotated[str, _checked(is_web_address)] | None,
    BeforeValidator(_nothing),
    Accepts("nothing, or http://host or https://host, with a port and a path if needed"),
]
ListenHost = Annotated[
    str, _checked(is_host), Accepts("a host name or an address, e.g. 127.0.0.1, 0.0.0.0 or ::1"),
]  # fmt: skip
OptionalHost = Annotated[
    str, _checked(lambda t: t == "" or is_host(t)), Accepts("nothing, or a host name or an address"),
]  # fmt: skip
ListenAddress = Annotated[
    str, _checked(is_ipv4), Accepts("an IPv4 address of this machine, e.g. 127.0.0.1, or 0.0.0.0 for all"),
]  # fmt: skip
Names = Annotated[
    str, _checked(lambda t: t == "" or all(name == "*" or is_host(name) for name in t.split(","))),
    Accepts("nothing, or host names and addresses with commas between them, or *"),
]  # fmt: skip
HeaderName = Annotated[
    str, _checked(lambda t: re.fullmatch(r"[A-Za-z0-9-]{0,100}", t) is not None),
    Accepts("nothing, or the name of an HTTP header, e.g. X-Forwarded-User"),
]  # fmt: skip
HeaderText = Annotated[
    str, _checked(lambda t: re.fullmatch(r"[!-~]{0,200}", t) is not None),
    Accepts("nothing, or up to 200 visible ASCII characters without a space"),
]  # fmt: skip
Token = Annotated[
    SecretStr, _confidential(is_token), Confidential(),
    Accepts("nothing, or 16 to 200 visible ASCII characters without a space"),
]  # fmt: skip
Secret = Annotated[
    SecretStr, _confidential(_is_line), Confidential(), Accepts("nothing, or one line"),
]  # fmt: skip
OneLine = Annotated[str, _checked(_is_line), Accepts("nothing, or one line")]
Networks = Annotated[
    str, _checked(lambda t: t == "" or all(ipaddress.ip_network(each) for each in t.split(","))),
    Accepts("nothing, or addresses and networks with commas between them, e.g. 127.0.0.1,10.1.0.0/16"),
]  # fmt: skip
SeriesGlobs = Annotated[
    str, _checked(lambda t: t == "" or all(map(_is_series_glob, t.split(",")))),
    Accepts("nothing, or globs machine/metric of * and ? with commas between them, e.g. db-*/latency"),
]  # fmt: skip
Index = Annotated[
    str, _checked(lambda t: re.fullmatch(r"[a-z][a-z0-9_-]{0,99}", t) is not None),
    Accepts("small letters, digits, _ and -, a letter first, up to 100 characters"),
]  # fmt: skip
Prefix = Annotated[
    str, _checked(lambda t: re.fullmatch(r"([a-z0-9][a-z0-9-]{0,59}\.)?", t) is not None),
    Accepts("nothing, or small letters, digits and - (not first), and a dot at the end, e.g. staging."),
]  # fmt: skip
Folder = Annotated[Path, AfterValidator(_is_folder), Accepts("a directory, or where one can be made")]
OptionalFolder = Annotated[
    Annotated[Path, AfterValidator(_is_folder)] | None,
    BeforeValidator(_nothing),
    Accepts("nothing, or a directory, or where one can be made"),
]
CheckpointPlace = Annotated[
    Annotated[Path, AfterValidator(_is_folder_or_store)] | None,
    BeforeValidator(_store),
    BeforeValidator(_nothing),
    Accepts(
        "nothing; a directory, or where one can be made; or an address with a path, e.g. hdfs://name-node:8020/state"
    ),
]
FilePath = Annotated[str, _checked(_is_line), Accepts("nothing, or the path of a file")]
FamilyName = Literal["mixture", "count", "ratio", "categorical"]
Families = Annotated[
    dict[Glob, FamilyName],
    Accepts(f"globs of metrics, each with one of {', '.join(get_args(FamilyName))}"),
]
Bounds = Annotated[
    dict[Glob, Annotated[str, _checked(lambda t: bound(t) is None or True)]],
    Accepts("globs of metrics, each with what is empty and full, such as 0..100, 100..0, ..0, ..0@14d, or none"),
]
TimeZone = Annotated[Zone, Accepts("an IANA name, e.g. UTC or Europe/Stockholm")]


def accepted(info: FieldInfo) -> str:
    """The values that a setting accepts, in words, from its type and bounds."""
    for mark in info.metadata:
        if isinstance(mark, Accepts):
            return mark.text
    return _of_type(info.annotation, info.metadata)


def _of_type(kind: Any, marks: list[Any]) -> str:
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if get_origin(kind) is Annotated or get_origin(kind) is Union:
        return _of_type(get_args(kind)[0], marks)
    low = next((mark.ge for mark in marks if isinstance(mark, Ge)), None)
    high = next((mark.le for mark in marks if isinstance(mark, Le)), None)
    name = {int: "an integer", float: "a number", bool: "true or false"}[kind]
    return name if low is None else f"{name} from {low} to {high}"
