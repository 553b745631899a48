"""Bytes that come over ports of logs are divided into the messages that were sent, however the network cuts them."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.gateway import framing
from pipelines.gateway.framing import LONGEST, FramingError, GelfFrames, GelfPackets, SyslogFrames

SENT = [b"<34>1 - a b - - - one", b"<13>Nov 26 09:07:30 host app: 2 x", b"<0>x"]


def counted(message: bytes) -> bytes:
    return b"%d %s" % (len(message), message)


@given(st.lists(st.tuples(st.sampled_from(SENT), st.sampled_from("nlz")), max_size=8), st.data())
def test_syslog_over_tcp_is_divided_by_lengths_line_ends_or_nuls_wherever_it_is_cut(
    sent: list[tuple[bytes, str]], data: st.DataObject
) -> None:
    whole = b"".join({"n": counted(each), "l": each + b"\n", "z": each + b"\0"}[how] for each, how in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    frames, found = SyslogFrames(), list[bytes]()
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        found += frames.add(whole[begin:end])
    assert found == [each for each, _ in sent]
    assert frames.rest() == []


def test_a_text_that_begins_with_a_number_is_a_line_and_the_last_line_needs_no_end() -> None:
    frames = SyslogFrames()
    assert frames.add(b"2026 was a year\n12 monkeys\n<34>no end") == [b"2026 was a year", b"12 monkeys"]
    assert frames.rest() == [b"<34>no end"]


@pytest.mark.parametrize("kind", [SyslogFrames, GelfFrames])
def test_a_message_that_never_ends_is_refused_before_it_fills_the_memory(kind: type[framing.Frames]) -> None:
    frames = kind()
    with pytest.raises(FramingError):
        for _ in range(LONGEST // 10_000 + 2):
            frames.add(b"x" * 10_000)


def test_an_announced_length_beyond_the_bound_is_refused_at_once() -> None:
    with pytest.raises(FramingError):
        SyslogFrames().add(b"9999999 <34>x")


def chunks(message: bytes, size: int, name: bytes = b"12345678") -> list[bytes]:
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return [b"\x1e\x0f" + name + bytes([at, len(parts)]) + part for at, part in enumerate(parts)]


@given(st.permutations(range(5)), st.sampled_from([bytes, gzip.compress, zlib.compress]))
def test_gelf_over_udp_is_put_together_from_chunks_in_any_order(order: list[int], packed: type[bytes]) -> None:
    message = bytes(range(256)) * 2
    whole = packed(message) if packed is not bytes else b"{" + message
    size = -(-len(whole) // 5)
    packets, sent = GelfPackets(), chunks(whole, size)
    found = [packets.message("a", sent[at], 0.0) for at in order if at < len(sent)]
    assert found[:-1] == [None] * (len(sent) - 1)
    assert found[-1] == (message if packed is not bytes else whole)


def test_chunks_that_come_twice_or_late_or_from_another_sender_do_not_complete_a_message() -> None:
    packets = GelfPackets()
    first, second = chunks(b"{}", 1)
    assert packets.message("a", first, 0.0) is None
    assert packets.message("a", first, 1.0) is None
    assert packets.message("b", second, 2.0) is None
    assert packets.message("a", second, 5.1) is None
    assert packets.given_up == 1
    assert packets.message("a", first, 6.0) == b"{}"


def test_chunks_that_never_become_a_message_are_given_up_before_they_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(framing, "_MOST_INCOMPLETE", 100_000)
    packets = GelfPackets()
    for number in range(1_000):
        packets.message("a", b"\x1e\x0f" + number.to_bytes(8) + b"\x00\x02" + b"x" * 1_000, 0.0)
    assert 850 < packets.given_up < 1_000


@pytest.mark.parametrize(
    "packet", [b"\x1e\x0fshort", b"\x1e\x0f12345678\x02\x02x", b"\x1e\x0f12345678\x00\xffx", b"\x1f\x8bno", b"\x78no"]
)
def test_a_packet_that_is_no_gelf_is_refused(packet: bytes) -> None:
    with pytest.raises(FramingError):
        GelfPackets().message("a", packet, 0.0)


def test_a_message_that_is_too_long_once_it_is_decompressed_is_refused() -> None:
    with pytest.raises(FramingError):
        GelfPackets().message("a", gzip.compress(b"x" * 10_000_000), 0.0)
