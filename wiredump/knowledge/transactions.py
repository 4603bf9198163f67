"""Transactions, from their first request to EndTxn, by transactional id.

A transaction begins with the first AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit or Produce
of its transactional id. It ends

- ``committed`` or ``aborted`` where EndTxn succeeds, or where the producer begins another although
  the response to its EndTxn was not captured;
- ``aborted`` where its producer recovers with InitProducerId;
- ``fenced`` where another producer takes the transactional id with InitProducerId, or where the
  coordinator refuses the producer's epoch;
- ``failed`` where EndTxn fails for another reason that the client cannot retry;
- ``open`` where the capture ends first.

Requests of brokers (AddPartitionsToTxn 4 and later) repeat what the clients' requests show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal, TypeAlias

import msgspec

from kproto import error_codes
from wiredump.knowledge.excerpts import (
    ADD_OFFSETS,
    ADD_PARTITIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    PRODUCE,
    TXN_OFFSET_COMMIT,
    Excerpt,
    JsonBody,
)
from wiredump.knowledge.recent import Recent
from wiredump.rows.exchanges import Row

__all__ = ["MOST_WEIGHT", "Transactions", "transactional_id_of"]

MOST_WEIGHT: Final = 1_000_000
"""The most partitions, topics and groups kept of open transactions; beyond that, the transactional
id silent for longest is forgotten, and its transaction counts as open."""

_FENCED: Final = frozenset({47, 90})
"""INVALID_PRODUCER_EPOCH, PRODUCER_FENCED."""

_RETRIABLE: Final = frozenset({7, 13, 14, 15, 16, 51})
"""REQUEST_TIMED_OUT, NETWORK_EXCEPTION, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE,
NOT_COORDINATOR, CONCURRENT_TRANSACTIONS."""

_Outcome: TypeAlias = Literal["committed", "aborted", "fenced", "failed", "open"]
_Producer: TypeAlias = tuple[int | None, int | None]


class _Transaction(msgspec.Struct):
    """``first`` is its first request, ``begun`` whether that was captured. ``committing`` is what
    EndTxn wants, as long as there is no response."""

    first: Excerpt
    producer: _Producer
    begun: bool = True
    coordinator: str | None = None
    committing: bool | None = None
    requests: int = 0
    offsets: set[tuple[str, str, int]] = set()
    partitions: set[tuple[str, int]] = set()
    groups: set[str] = set()
    errors: set[int] = set()

    @property
    def weight(self) -> int:
        return 10 + len(self.offsets) + len(self.partitions) + len(self.groups) + len(self.errors)

    def row(self, transactional_id: str, outcome: _Outcome, by: Excerpt | None) -> Row:
        first = self.first
        began = first.requested_ns if self.begun else None
        ended = None if by is None else by.completed_ns
        lasted = None if began is None or ended is None or ended < began else ended - began
        return "transactions", (
            transactional_id, *self.producer, outcome, self.coordinator, first.client_id,
            first.software_name, first.software_version, began, ended, lasted,
            sorted({topic for topic, _ in self.partitions}), len(self.partitions),
            sorted(self.groups), len(self.offsets), self.requests,
            sorted(error_codes.name(code) for code in self.errors), first.connection,
            first.request_offset,
        )  # fmt: skip


class _Producers(msgspec.Struct):
    """What is known of a transactional id. ``producer`` is the newest id and epoch."""

    producer: _Producer = (None, None)
    open: _Transaction | None = None

    def transaction(
        self, excerpt: Excerpt, number: int | None = None, epoch: int | None = None
    ) -> _Transaction:
        """Return the transaction of a request, and count it. One of a producer that has been
        replaced is not kept."""
        known, newest = self.producer
        if epoch is not None and newest is not None and number == known and epoch < newest:
            return _Transaction(excerpt, (number, epoch), requests=1)
        if number is not None:
            self.producer = number, epoch
        if self.open is None:
            self.open = _Transaction(excerpt, self.producer)
        self.open.producer = self.producer
        self.open.requests += 1
        return self.open


_Ending: TypeAlias = tuple[_Transaction, _Outcome, Excerpt | None]


class Transactions:
    """Takes exchanges in the order of requests, then ``end``; both return rows."""

    def __init__(self, most_weight: int = MOST_WEIGHT) -> None:
        self._known: Recent[str, _Producers] = Recent(most_weight, _Producers)

    def feed(self, excerpt: Excerpt) -> Iterator[Row]:
        """Return the rows of transactions that this exchange ends."""
        transactional_id = transactional_id_of(excerpt)
        if excerpt.request is None or not transactional_id:
            return
        state = self._known.take(transactional_id)
        take = _TAKES[excerpt.api_key]
        for transaction, outcome, by in take(
            state, excerpt, excerpt.request, excerpt.response or {}
        ):
            yield transaction.row(transactional_id, outcome, by)
        weight = 10 if state.open is None else 10 + state.open.weight
        for key, gone in self._known.keep(transactional_id, state, weight):
            yield from _rows(key, gone)

    def end(self) -> Iterator[Row]:
        """Return the rows of transactions whose end was not captured."""
        for key, state in self._known.end():
            yield from _rows(key, state)


def transactional_id_of(excerpt: Excerpt) -> str | None:
    """Return the transactional id of a request."""
    request = excerpt.request or {}
    found = request.get("transactionalId", request.get("v3AndBelowTransactionalId"))
    return found if isinstance(found, str) else None


def _rows(transactional_id: str, state: _Producers) -> Iterator[Row]:
    if state.open is not None:
        outcome: _Outcome = "fenced" if state.open.errors & _FENCED else "open"
        yield state.open.row(transactional_id, outcome, None)


def _over(state: _Producers) -> Iterator[_Ending]:
    """End a transaction whose EndTxn had no response, since the producer goes on."""
    before = state.open
    if before is not None and before.committing is not None:
        state.open = None
        yield before, "committed" if before.committing else "aborted", None


def _produced(
    state: _Producers, excerpt: Excerpt, request: JsonBody, response: JsonBody
) -> Iterator[_Ending]:
    yield from _over(state)
    found = state.transaction(excerpt)
    for topic in request.get("topicData") or ():
        name = topic.get("name") or topic.get("topicId") or ""
        for each in topic.get("partitionData") or ():
            found.partitions.add((name, each.get("index", -1)))
    codes = _codes(response.get("responses"), "partitionResponses", "errorCode")
    found.errors |= codes
    if codes & _FENCED and found.requests == 1:
        yield from _refused(state, found, excerpt, codes)


def _added(
    state: _Producers, excerpt: Excerpt, request: JsonBody, response: JsonBody
) -> Iterator[_Ending]:
    yield from _over(state)
    producer = request.get("v3AndBelowProducerId"), request.get("v3AndBelowProducerEpoch")
    found = state.transaction(excerpt, *producer)
    found.coordinator = excerpt.broker
    for topic in request.get("v3AndBelowTopics") or ():
        for partition in topic.get("partitions") or ():
            found.partitions.add((topic.get("name", ""), partition))
    codes = _codes(
        response.get("resultsByTopicV3AndBelow"), "resultsByPartition", "partitionErrorCode"
    )
    yield from _refused(state, found, excerpt, codes)


def _offsets_added(
    state: _Producers, excerpt: Excerpt, request: JsonBody, response: JsonBody
) -> Iterator[_Ending]:
    yield from _over(state)
    found = state.transaction(excerpt, request.get("producerId"), request.get("producerEpoch"))
    found.coordinator = excerpt.broker
    if "groupId" in request:
        found.groups.add(request["groupId"])
    yield from _refused(state, found, excerpt, {response.get("errorCode") or 0} - {0})


def _offsets_committed(
    state: _Producers, excerpt: Excerpt, request: JsonBody, response: JsonBody
) -> Iterator[_Ending]:
    """The group's coordinator answers this request, not the transaction's."""
    yield from _over(state)
    found = state.transaction(excerpt, request.get("producerId"), request.get("producerEpoch"))
    group = request.get("groupId", "")
    found.groups.add(group)
    for topic in request.get("topics") or ():
        name = topic.get("name") or topic.get("topicId") or ""
        for each in topic.get("partitions") or ():
            found.offsets.add((group, name, each.get("partitionIndex", -1)))
    codes = _codes(response.get("topics"), "partitions", "errorCode")
    found.errors |= codes
    if found is not state.open:
        yield from _refused(state, found, excerpt, codes)


def _ended(
    state: _Producers, excerpt: Excerpt, request: JsonBody, response: JsonBody
) -> Iterator[_Ending]:
    found = state.transaction(excerpt, request.get("producerId"), request.get("producerEpoch"))
    found.coordinator = excerpt.broker
    if found.requests == 1:
        found.begun = False
    wanted: _Outcome = "committed" if request.get("committed") else "aborted"
    code = response.get("errorCode")
    if code is None:
        found.committing = wanted == "committed"
    elif code == 0:
        if response.get("producerId", -1) >= 0:  # KIP-890: the next transaction has another epoch
            state.producer = response["producerId"], response.get("producerEpoch")
        if found is state.open:
            state.open = None
            yield found, wanted, excerpt
    elif code in _RETRIABLE:
        found.errors.add(code)
    elif code in _FENCED:
        yield from _refused(state, found, excerpt, {code})
    else:
        found.errors.add(code)
        if found is state.open:
            state.open = None
        yield found, "failed", excerpt


def _initialized(
    state: _Producers, excerpt: Excerpt, request: JsonBody, response: JsonBody
) -> Iterator[_Ending]:
    code = response.get("errorCode")
    if code == 0:
        yield from _over(state)
        found, state.open = state.open, None
        state.producer = response.get("producerId"), response.get("producerEpoch")
        if found is not None:
            yield found, "aborted" if request.get("producerId", -1) >= 0 else "fenced", excerpt
    elif code in _FENCED and state.open is not None:
        yield from _refused(state, state.open, excerpt, {code})


def _refused(
    state: _Producers, found: _Transaction, excerpt: Excerpt, codes: set[int]
) -> Iterator[_Ending]:
    """End the transaction if the coordinator knows a newer producer."""
    found.errors |= codes
    if codes & _FENCED:
        if found is state.open:
            state.open = None
        yield found, "fenced", excerpt


def _codes(topics: list[JsonBody] | None, inside: str, name: str) -> set[int]:
    found = {each.get(name, 0) for topic in topics or () for each in topic.get(inside) or ()}
    return found - {0}


_TAKES: Final[dict[int, Callable[[_Producers, Excerpt, JsonBody, JsonBody], Iterator[_Ending]]]] = {
    PRODUCE: _produced,
    INIT_PRODUCER_ID: _initialized,
    ADD_PARTITIONS: _added,
    ADD_OFFSETS: _offsets_added,
    END_TXN: _ended,
    TXN_OFFSET_COMMIT: _offsets_committed,
}
