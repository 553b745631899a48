"""rsyslog, running here: lines that it takes by UDP and writes in three ways are the lines that were sent."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.agents.agents import free_port, installed, read, running, taken, until

TEMPLATE = """
template(name="json" type="list" option.jsonf="on") {
  property(outname="ts" name="timereported" dateFormat="rfc3339" format="jsonf")
  property(outname="host" name="hostname" format="jsonf")
  property(outname="severity" name="syslogseverity" format="jsonf" datatype="number")
  property(outname="program" name="programname" format="jsonf")
  property(outname="msg" name="msg" format="jsonf")
}
template(name="bsd" type="string"
  string="<%PRI%>%TIMESTAMP% %HOSTNAME% %syslogtag:1:32%%msg:::sp-if-no-1st-sp%%msg%\\n")
"""
CONFIG = """
global(workDirectory="{folder}")
module(load="imudp")
{template}
input(type="imudp" address="127.0.0.1" port="{port}")
action(type="omfile" file="{folder}/json" template="json")
action(type="omfile" file="{folder}/rfc5424" template="RSYSLOG_SyslogProtocol23Format")
action(type="omfile" file="{folder}/rfc3164" template="bsd")
"""
SENT = [
    b'<34>1 2026-11-21T00:27:00.013Z web-1 sshd 7 ID47 [x@1 k="v"] Failed password for "root" \xc3\xa9\\n',
    b"<13>1 2026-11-21T00:27:01Z web-2 cron 9 - - job done",
]
LINES = [
    ("web-1", "sshd", 2, 'Failed password for "root" \u00e9\\n', 1_795_220_820_013),
    ("web-2", "cron", 5, "job done", 1_795_220_821_000),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which rsyslog has written the lines that were sent."""
    program, where = installed("rsyslogd", "rsyslog"), tmp_path_factory.mktemp("rsyslog")
    config, log, port = where / "rsyslog.conf", where / "log", free_port()
    config.write_text(CONFIG.format(folder=where, template=TEMPLATE, port=port))

    def arrived() -> bool:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for line in SENT:
                sender.sendto(line, ("127.0.0.1", port))
        return (where / "json").exists() and len((where / "json").read_bytes().splitlines()) >= len(SENT)

    with running([program, "-n", "-f", str(config), "-i", str(where / "pid")], log):
        until(arrived, log)
    return where


def lines(file: Path, form: str) -> list[tuple[str, str, int, str, int]]:
    """The distinct lines in a file; the sender repeats them until rsyslog listens."""
    found = taken(read(*file.read_bytes().splitlines()), form)
    told = [(each["entity"], each["program"], each["severity"], each["message"], each["time"]) for each in found]
    return sorted(set(told))


def test_lines_in_json_are_those_that_were_sent(folder: Path) -> None:
    assert lines(folder / "json", "rsyslog") == LINES


def test_lines_of_rfc_5424_are_those_that_were_sent(folder: Path) -> None:
    assert lines(folder / "rfc5424", "syslog") == LINES


def test_lines_of_rfc_3164_are_those_that_were_sent_with_whole_seconds(folder: Path) -> None:
    found = lines(folder / "rfc3164", "syslog")
    assert [(host, severity, time) for host, _, severity, _, time in found] == [
        (host, severity, time // 1000 * 1000) for host, _, severity, _, time in LINES
    ]
    for (*_, message, _), (*_, sent, _) in zip(found, LINES, strict=True):
        assert message.endswith(sent)
