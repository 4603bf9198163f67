"""Who ended a connection, and how: FIN or reset, by the client or the broker."""

from __future__ import annotations

import pytest

from kproto.capture.packets import ACK, FIN, RST
from tests.wiredump.readers.conversations import Connection, Sent, handshake, packets
from tests.wiredump.test_search import beat, beaten
from wiredump.model import Anomaly, Item
from wiredump.readers import Streams
from wiredump.rows.connections import ConnectionCounts
from wiredump.rows.schema import TABLES
from wiredump.show.summary import Summary
from wiredump.sources.captures import CaptureItems

ASK, ANSWER = beat(1), beaten(1)
PORTS = frozenset({9092})


def read(sent: list[Sent]) -> tuple[CaptureItems, list[Item]]:
    streams, items = Streams(), CaptureItems(ports=PORTS)
    found = list(items.read(streams.read(packets(sent, Connection()))))
    items.account.check()
    return items, found


def ending(items: CaptureItems) -> tuple[str | None, str | None, bool]:
    """As the table ``connections`` has it."""
    ((_, row),) = ConnectionCounts().rows(items.connections)
    names = [column.name for column in TABLES["connections"].columns]
    by_name = dict(zip(names, row, strict=True))
    return by_name["closed_by"], by_name["closed_with"], by_name["closed_ns"] is not None


def fin(side: int, *, answered: int = 0) -> Sent:
    end = (len(ASK), answered)
    return Sent(side, end[side], flags=FIN | ACK, acked=end[1 - side])


def reset(side: int, *, answered: int = 0) -> Sent:
    return Sent(side, (len(ASK), answered)[side], flags=RST)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("middle", [False, True])
def test_who(side: int, middle: bool) -> None:
    name = ("client", "broker")[side]
    talk = [] if middle else handshake()
    talk += [Sent(0, 0, ASK), Sent(1, 0, ANSWER, acked=len(ASK))]
    done = len(ANSWER)
    first, second = fin(side, answered=done), fin(1 - side, answered=done)
    assert ending(read(talk)[0]) == (None, None, False)
    assert ending(read([*talk, first])[0]) == (name, "fin", False)
    assert ending(read([*talk, first, first, second])[0]) == (name, "fin", True)
    assert ending(read([*talk, reset(side, answered=done)])[0]) == (name, "reset", True)
    cut_off = [*talk, first, reset(1 - side, answered=done)]
    assert ending(read(cut_off)[0]) == (name, "fin", True)


@pytest.mark.parametrize(("end", "how"), [(fin, "closed"), (reset, "reset")])
@pytest.mark.parametrize("side", [0, 1])
def test_what_was_not_answered_says_who_hung_up(end, how, side) -> None:
    name = ("client", "broker")[side]
    last = [end(side), end(1 - side)] if end is fin else [end(side)]
    items, found = read([*handshake(), Sent(0, 0, ASK), *last])
    (anomaly,) = [item for item in found if isinstance(item, Anomaly)]
    assert anomaly.kind == "unanswered"
    assert anomaly.reason == f"the connection was {how} by the {name}"
    summary = Summary()
    summary.ended(items.connections.values())
    assert summary.record()["closed"] == {f"{how} by the {name}": 1}


def test_a_reset_that_no_receiver_would_take_ends_nothing() -> None:
    far = Sent(1, 1 << 28, flags=RST)
    assert ending(read([*handshake(), Sent(0, 0, ASK), far])[0]) == (None, None, False)


def test_the_end_that_turns_out_to_be_the_client() -> None:
    """By the ports one would think otherwise; the bytes say who asks."""
    turned = [Sent(1, 0, ASK), Sent(0, 0, ANSWER), Sent(1, len(ASK), flags=FIN | ACK)]
    streams, items = Streams(), CaptureItems(ports=frozenset())
    list(items.read(streams.read(packets(turned, Connection()))))
    assert ending(items) == ("client", "fin", False)
