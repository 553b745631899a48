"""The decoder of the access and error logs of web servers: Apache and nginx.

Sources: Apache's mod_log_config (common, combined, vhost_combined) and ``ErrorLogFormat``; nginx' ngx_http_log_module
and ngx_log. None of them names the machine: what stands in front is the client, or the name of a site.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from pipelines.formats.text_logs import TextLogDecoder

_REQUEST = r'"(?:[^"\\]|\\.)*"'
ACCESS = (
    r"^\S+ (?:\S+ )?\S+ \S[^\[\"]* \[(?<stamp>[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9:]{8} [+-][0-9]{4})\] "
    rf"(?<message>{_REQUEST} (?<severity>[0-9]{{3}}|-) .*)$"
)
NGINX_ERROR = (
    r"^(?<stamp>[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9:]{8}) \[(?<severity>[a-z]+)\] (?:[0-9]+#[0-9]+: )?(?<message>.*)$"
)
APACHE_ERROR = (
    r"^\[(?<stamp>[A-Z][a-z]{2} [A-Z][a-z]{2} [0-9]{2} [0-9:]{8}(?:\.[0-9]{1,6})? [0-9]{4})\] "
    r"\[(?:[a-z0-9_-]*:)?(?<severity>[a-z0-9]+)\] (?:\[pid [0-9]+(?::tid [0-9]+)?\] )?(?<message>.*)$"
)

_TIME = r"\[[^\]]*\] "

_BEGINS = [re.compile(each.replace("(?<", "(?P<").encode()) for each in (ACCESS, NGINX_ERROR, APACHE_ERROR)]


def looks_like_web_log(value: bytes) -> bool:
    """Whether a message begins with a line of the log of a web server."""
    first = value.split(b"\n", 1)[0].rstrip()[:65_536]
    return any(each.match(first) for each in _BEGINS)


@dataclass(frozen=True)
class WebLogDecoder(TextLogDecoder):
    """Decodes lines such as ``192.0.2.7 - - [21/Nov/2026:00:27:00 +0000] "GET /x HTTP/1.1" 200 17``.

    The text of an access is the line without its time. It is an error if the status is 500 or more, else informational.
    """

    accepted = 'accepted: client - user [21/Nov/2026:00:27:00 +0000] "GET /x HTTP/1.1" 200 17, and lines of error logs'
    patterns = (ACCESS, NGINX_ERROR, APACHE_ERROR)

    def finished(self, lines: pl.DataFrame) -> pl.DataFrame:
        status = pl.col("severity")
        access = status.str.contains(r"^[0-9]{3}$|^-$")
        level = pl.when(access).then(pl.when(status.str.starts_with("5")).then(pl.lit("err"))).otherwise(status)
        text = pl.when(access).then(pl.col("line").str.replace(_TIME, "")).otherwise("message")
        return lines.with_columns(severity=level, message=text)
