"""What counts as ordinary passes every row of every release: the rows alone are the rules.

Each test takes the usual case and changes one or two facts at a time, in all ways listed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from kproto.records import Compression
from mockbroker.simulation.log.batches.batch_header import read_header
from mockbroker.simulation.log.producing.produce_rules import (
    ADMIN_CLIENT,
    BATCH_ROWS,
    FIRST_BATCH_ROWS,
    PARTITION_ROWS,
    REQUEST_ROWS,
    STORED_ROWS,
    Arrival,
    ArrivedBatch,
    RequestFacts,
    RewrittenBatch,
    is_ordinary_arrival,
    is_ordinary_batch,
    is_ordinary_request,
    is_ordinary_stored,
    layout_of,
)
from mockbroker.simulation.log.producing.producer_states import (
    ROWS,
    KeptBatch,
    Producer,
    ProducerBatch,
    is_ordinary_sequence,
)
from mockbroker.simulation.releases.rows import Row
from tests.mockbroker.simulation.log.producing import batch, changed, new_cluster

CaseT = TypeVar("CaseT")

GOOD = batch(b"a", b"b")
OLD = batch(b"a", magic=1)
TRANSACTIONAL = 16
HEADERS: Mapping[str, Sequence[int]] = {
    "base_offset": [1],
    "attributes": [1, 4, 5, 7, TRANSACTIONAL, 32, 33],
    "last_offset_delta": [-1, 0, 2],
    "producer_id": [0, 9],
    "base_sequence": [0, 1],
    "record_count": [-1, 0, 1, 3],
}
DATA = [
    None, b"", GOOD[:-1], GOOD[:-1] + b"\xff", GOOD + b"\0", GOOD + GOOD, GOOD + OLD, OLD,
    OLD + GOOD, changed(GOOD, attributes=5), changed(GOOD, attributes=1) * 2,
    GOOD[:16] + b"\3" + GOOD[17:], GOOD[:8] + bytes(4) + GOOD[12:],
]  # fmt: skip
"""The records of a partition, where they are not one good batch."""


def changes(usual: Mapping[str, Any], odd: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield the usual facts, and those with one or two of them changed."""
    yield dict(usual)
    single = [(name, value) for name, values in odd.items() for value in values]
    for some in (*zip(single, strict=True), *itertools.combinations(single, 2)):
        yield {**usual, **dict(some)}


def check(
    cases: Sequence[CaseT], is_ordinary: Callable[[CaseT], bool], *tables: Sequence[Row[CaseT, Any]]
) -> None:
    """The first case is the usual one."""
    assert is_ordinary(cases[0])
    for case in filter(is_ordinary, cases):
        assert [row.requirement for rows in tables for row in rows if row.when(case)] == []


def test_an_ordinary_request_passes_all_rows() -> None:
    usual = {"acks": -1, "version": 9, "client_id": "me", "data": [GOOD]}
    odd = {
        "acks": [0, 1, 2],
        "version": [0, 2, 3, 6, 7, 13],
        "client_id": [None, ADMIN_CLIENT],
        "transactional_id": ["t"],
        "producers": [frozenset({(7, 0)}), frozenset({(7, 0), (8, 0)})],
        "is_idempotent": [True],
        "may_write_id": [False],
        "may_be_idempotent": [False],
        "data": [[], [GOOD, GOOD], *([data] for data in DATA), *([GOOD, data] for data in DATA)],
    }
    cases = [RequestFacts(**facts) for facts in changes(usual, odd)]
    check(cases, is_ordinary_request, REQUEST_ROWS)


def test_an_ordinary_arrival_passes_all_rows() -> None:
    usual = {
        "request": RequestFacts(-1, 9, "me"), "topic": "foo", "may_write": True, "is_known": True,
        "leads": True, "in_sync": 3, "min_isr": 1, "layout": layout_of(GOOD), "codec": 0,
    }  # fmt: skip
    odd = {
        "request": [
            RequestFacts(acks, version, client_id)
            for acks in (-1, 0, 1, 2)
            for version in (0, 2, 3, 6, 7)
            for client_id in ("me", ADMIN_CLIENT)
        ],
        "topic": [None, "__consumer_offsets", "__transaction_state"],
        "may_write": [False],
        "is_known": [False],
        "leads": [False],
        "in_sync": [0, 1],
        "min_isr": [0, 3, 4],
        "layout": [layout_of(data) for data in DATA],
        "codec": [1, int(Compression.ZSTD), 5],
        "unverified": [(ErrorCode.INVALID_TXN_STATE, None)],
    }
    cases = [Arrival(**facts) for facts in changes(usual, odd)]
    check(cases, is_ordinary_arrival, PARTITION_ROWS)


def test_an_ordinary_batch_passes_all_rows() -> None:
    settings = new_cluster().logs.settings("foo")
    small, old = replace(settings, max_message_bytes=60), replace(settings, magic=1)
    cases = []
    data: bytes | None
    for data in (*(changed(GOOD, **fields) for fields in changes({}, HEADERS)), *DATA):
        places = layout_of(data).batches
        for place, each in itertools.product(places, (settings, small, old)):
            assert data is not None
            header = read_header(data, place[0]) if place[2] == 2 else None
            cases.append(ArrivedBatch(data, place, header, each, places[0][2], len(places)))
    check(cases, is_ordinary_batch, FIRST_BATCH_ROWS, BATCH_ROWS)


def test_what_is_ordinarily_stored_passes_all_rows() -> None:
    settings = new_cluster().logs.settings("foo")
    small = replace(settings, segment_bytes=99)
    facts = itertools.product((98, 99, 100), (False, True), (settings, small))
    cases = [RewrittenBatch(*each) for each in facts]
    check(
        cases,
        lambda case: is_ordinary_stored(case.size, case.settings, is_rebuilt=case.is_rebuilt),
        STORED_ROWS,
    )


def test_an_ordinary_sequence_passes_all_rows() -> None:
    last = 0x7FFFFFFF
    kept = [KeptBatch(first, end, 0, 0, 0) for first, end in ((0, 3), (4, 5), (4, last), (6, last))]

    def producer(epoch: int = 0, *batches: KeptBatch, transaction: int | None = None) -> Producer:
        found = Producer(9, epoch, transaction_start=transaction)
        found.batches.extend(batches)
        return found

    usual = {
        "known": producer(0, kept[0]), "epoch": 0, "first_sequence": 4, "last_sequence": 5,
        "is_transactional": False,
    }  # fmt: skip
    odd = {
        "known": [
            None,
            producer(),
            producer(-1),
            *(producer(e, *two) for e in (-1, 0, 1) for two in itertools.product(kept, kept)),
            producer(0, kept[0], transaction=0),
        ],
        "epoch": [-1, 1],
        "first_sequence": [-1, 0, 5, 6, last],
        "last_sequence": [-1, 0, 3, 4, 6, last],
        "is_transactional": [True],
        "implicit": [True],
        "is_verified": [False],
    }  # fmt: skip
    cases = [ProducerBatch(**facts) for facts in changes(usual, odd)]
    check(cases, is_ordinary_sequence, ROWS)
