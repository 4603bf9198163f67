"""What must hold of transactions, each with its source. Nothing here changes the cluster.

``TRANSACTIONS_ALWAYS`` are checked after every step, the others of what a consumer reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from fuzz.stateful import data_bodies
from fuzz.stateful.data_model import Batch, DataModel
from fuzz.stateful.transaction_model import Course, Transaction, TransactionModel
from fuzz.stateful.world import World
from kproto.records import RecordBatches
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = [
    "TRANSACTIONS_ALWAYS",
    "ReadCommitted",
    "committed_offsets_are_the_newest",
    "read_committed",
    "what_is_read_is_committed",
]

_MOST_FETCHES: Final = 200
_MAY_BE_VISIBLE: Final = (Course.ASKED, Course.COMMITTED)


# ---- after every step ----------------------------------------------------------------------------


def the_stable_offset_stands(world: World, data: DataModel, model: TransactionModel) -> None:
    """The last stable offset does not go back unless the log was cut, and does not pass the first
    record of a transaction that is open (KIP-98)."""
    now_ms = world.cluster.timers.now_ms
    for tp, part in world.cluster.logs:
        stable, known = part.log.last_stable_offset, model.stable.get(tp, 0)
        # An acknowledged batch of a transaction may be cut along with others.
        assert stable >= known or tp in model.cut, (tp, known, stable)
        model.stable[tp] = stable
    model.cut.clear()
    for transaction in model.transactions:
        if transaction.course is not Course.OPEN or transaction.due_ms <= now_ms:
            continue
        for batch in transaction.batches:
            found = world.cluster.logs.find(batch.tp)
            if found is None or not _is_there(data, batch, found.start_offset):
                continue
            stable = found.last_stable_offset
            assert stable <= (batch.offset or 0), (batch, transaction, stable)


def _is_there(data: DataModel, batch: Batch, start: int) -> bool:
    """Whether a batch was acknowledged and not cut off, and its log knows its producer."""
    known = batch.offset is not None and batch.offset >= start
    return known and not batch.lost and batch.tp not in data.forgotten


def epochs_only_grow(world: World, data: DataModel, model: TransactionModel) -> None:
    """The epoch of a producer id does not go back at its coordinator (KIP-98, KIP-360)."""
    for each in world.cluster.transactions.transactions.values():
        metadata = each.metadata
        known = model.stored_epochs.get(metadata.producer_id, -1)
        assert metadata.epoch >= known, (each.transactional_id, known, metadata)
        model.stored_epochs[metadata.producer_id] = metadata.epoch


def offsets_appear_with_the_commit(world: World, data: DataModel, model: TransactionModel) -> None:
    """An offset of a transaction is its group's only if the commit was asked for (KIP-98)."""
    for group in world.cluster.offsets.group_ids():
        for tp, committed in world.cluster.offsets[group].items():
            found = model.of_offset.get(committed.offset)
            assert found is None or found.course in _MAY_BE_VISIBLE, (group, tp, committed, found)


TRANSACTIONS_ALWAYS: Final[tuple[Callable[[World, DataModel, TransactionModel], None], ...]] = (
    the_stable_offset_stands,
    epochs_only_grow,
    offsets_appear_with_the_commit,
)


def committed_offsets_are_the_newest(
    world: World, data: DataModel, model: TransactionModel, group: str
) -> None:
    """At the end, a group has of each partition an offset that a producer committed last, unless
    the records of offsets were cut."""
    if model.offsets_lost:
        return
    found = world.cluster.offsets[group]
    for tp in {tp for each in model.transactions for tp in each.taken}:
        if tp[0] not in world.cluster.topics or tp[0] in model.deleted:
            continue
        allowed, sure = _newest_offsets(model, tp)
        here = found.get(tp)
        offset = None if here is None else here.offset
        assert offset in allowed or (offset is None and not sure), (group, tp, offset, allowed)


def _newest_offsets(model: TransactionModel, tp: TopicPartition) -> tuple[set[int], bool]:
    """The offsets that each transactional id may have committed last, and whether there is one."""
    chains: dict[str, set[int]] = {}
    sure = False
    for each in model.transactions:
        offsets = {offset for offset, of in each.offsets.items() if of == tp}
        if not offsets or each.course not in _MAY_BE_VISIBLE:
            continue
        if each.course is Course.COMMITTED and tp in each.taken:
            sure = True
            chains[each.transactional_id] = {o for o in offsets if o >= each.taken[tp]}
        else:
            chains.setdefault(each.transactional_id, set()).update(offsets)
    return {offset for chain in chains.values() for offset in chain}, sure


# ---- what a consumer reads -----------------------------------------------------------------------


@dataclass(slots=True)
class ReadCommitted:
    """The values that a consumer gets of a partition from ``start`` on, in order. ``end`` is below
    the last stable offset if answers are held back."""

    tp: TopicPartition
    start: int
    end: int
    stable: int
    values: list[tuple[int, bytes]]


def read_committed(
    world: World, ids: Mapping[str, UUID], slot: int, broker: int, tp: TopicPartition, start: int
) -> ReadCommitted | None:
    """Fetch a partition as a consumer with ``read_committed`` does, which drops the batches of
    aborted transactions; None where a fault or an error is in the way."""
    client, version = world.client(slot, broker), world.served(1).highest
    offset, stable, values = start, start, list[tuple[int, bytes]]()
    for _ in range(_MOST_FETCHES):
        body = data_bodies.fetch(version, tp, ids, offset, wait_ms=0, min_bytes=0, isolation=1)
        request = None if client is None else world.ask(client, body, version)
        if request is None or request.faulted or request.answer is None:
            return None
        if request.answer.error_code or not request.answer.responses:
            return None
        part = request.answer.responses[0].partitions[0]
        if part.error_code:
            return None
        stable = part.last_stable_offset
        following = _take(part, offset, values)
        if following == offset:
            return ReadCommitted(tp, start, offset, stable, values)
        offset = following
    raise AssertionError(f"{tp} is not read to its end in {_MOST_FETCHES} fetches")


def _take(part: Any, offset: int, values: list[tuple[int, bytes]]) -> int:
    """Take the records of one answer; the offset that follows them."""
    aborted = sorted(
        (each.first_offset, each.producer_id) for each in part.aborted_transactions or ()
    )
    dropped: set[int] = set()
    for batch in RecordBatches(part.records or b"", allow_partial=True):
        while aborted and aborted[0][0] <= batch.last_offset:
            dropped.add(aborted.pop(0)[1])
        if batch.is_control:
            dropped.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in dropped):
            values += [
                (record.offset, record.value or b"") for record in batch if record.offset >= offset
            ]
        offset = max(offset, batch.last_offset + 1)
    return offset


def what_is_read_is_committed(
    data: DataModel, model: TransactionModel, read: ReadCommitted
) -> None:
    """Records of a transaction are read if it is committed, each once and in the order in which
    they were sent, and never if nobody asked for its commit (KIP-98)."""
    if read.tp in data.forgotten:
        return
    seen: Counter[bytes] = Counter()
    newest: dict[Transaction, tuple[int, int]] = {}
    for offset, value in read.values:
        number, _, index = value.partition(b":")
        transaction = model.of_batch.get(int(number)) if number.isdigit() else None
        if transaction is None or int(number) in model.unmarked:
            continue
        seen[value] += 1
        assert transaction.course in _MAY_BE_VISIBLE, (read.tp, offset, value, transaction)
        assert seen[value] == 1, f"{read.tp} has {value!r} twice: {read}"
        place = (int(number), int(index))
        assert place > newest.get(transaction, (-1, -1)), (read.tp, offset, value, transaction)
        newest[transaction] = place
    for transaction in model.transactions:
        if transaction.course is not Course.COMMITTED:
            continue
        for batch in transaction.batches:
            if batch.tp != read.tp or not _is_there(data, batch, read.start):
                continue
            if batch.number in model.unmarked:
                continue
            if (batch.offset or 0) + batch.count <= read.end:
                lacking = [each for each in batch.values if not seen[each]]
                assert not lacking, (read, batch, transaction, lacking)
