"""The decoders of log files of containers: CRI's lines (containerd, CRI-O), and Docker's driver json-file.

Sources: the Kubernetes design "CRI: Log management for container stdout/stderr streams"; moby's package ``jsonlog``.
Neither format names a machine, and a program only where Docker's option ``tag`` says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from pipelines.formats.text_logs import TextLogDecoder, unescaped

CRI = (
    r"^(?<stamp>[0-9]{4}-[0-9]{2}-[0-9]{2}T\S+) (?<stream>stdout|stderr) "
    r"(?:F|(?<more>P))(?::\S*)?(?: (?<message>.*))?$"
)
_TEXT = r'(?:[^"\\\x00-\x1f]|\\.)*'
_REST = (
    rf'"stream":"(?<stream>stdout|stderr)"(?:,"attrs":\{{(?<program>(?:"{_TEXT}"[:,]?)*)\}})?'
    r',"time":"(?<stamp>[^"\\]*)"\}$'
)
DOCKER = rf'^\{{"log":"(?<message>{_TEXT}?)\\n",{_REST}'
DOCKER_GOES_ON = rf'^\{{"log":"(?<message>{_TEXT})(?<more>",){_REST}'
_TAG = r'(?:^|,)"tag":"([^"\\]*)"'

_BEGINS_CRI = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T\S+ std(?:out|err) [FP](?:[: \n]|$)")
_BEGINS_DOCKER = re.compile(DOCKER_GOES_ON.replace("(?<", "(?P<").encode())


def looks_like_cri(value: bytes) -> bool:
    """Whether a message begins with a line of CRI."""
    return _BEGINS_CRI.match(value) is not None


def looks_like_docker(value: bytes) -> bool:
    """Whether the first line of a message has the fields of Docker's json-file, in its order, and no others."""
    return value.startswith(b'{"log":"') and _BEGINS_DOCKER.match(value.split(b"\n", 1)[0].rstrip()) is not None


@dataclass(frozen=True)
class CriDecoder(TextLogDecoder):
    """Decodes lines such as ``2026-11-21T00:27:00.013Z stdout F no``; ``P`` marks one that goes on in the next."""

    accepted = "accepted: 2026-11-21T00:27:00Z stdout F text"
    patterns = (CRI,)


@dataclass(frozen=True)
class DockerDecoder(TextLogDecoder):
    r"""Decodes lines such as ``{"log":"no\n","stream":"stdout","time":"2026-11-21T00:27:00.013Z"}``.

    A text without a line end goes on in the next line.
    """

    accepted = 'accepted: {"log":"text","stream":"stdout","time":"2026-11-21T00:27:00Z"}'
    patterns = (DOCKER, DOCKER_GOES_ON)

    def finished(self, lines: pl.DataFrame) -> pl.DataFrame:
        lines = lines.with_columns(program=pl.col("program").str.extract(_TAG))
        escaped = lines["message"].str.contains("\\", literal=True).fill_null(value=False)
        if not escaped.any():
            return lines
        return lines.with_columns(message=unescaped(lines["message"], escaped))
