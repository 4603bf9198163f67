"""What must hold of logs, groups and offsets after every step, each with its source.

``DATA_ALWAYS`` are checked after the invariants of the cluster. Nothing here changes the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fuzz.stateful.data_model import OFFSETS_TOPIC, DataModel
from fuzz.stateful.world import World
from mockbroker.simulation.groups.classic.classic_group import Group
from mockbroker.simulation.log.batches.record_documents import UnreadableBatch
from mockbroker.simulation.log.logs import PartitionData
from mockbroker.simulation.log.seeding import read_records
from mockbroker.simulation.state.actions import Action, RecordsLost
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["DATA_ALWAYS", "acknowledged_records_are_lost_only_unclean", "values_of"]

_UNCLEAN: Final = "unclean.leader.election.enable"
_LOSING: Final = frozenset({"truncate", "unclean_election"})
"""The causes of a tester's steps that lose acknowledged records."""


def _logs(world: World) -> Iterator[tuple[TopicPartition, PartitionData]]:
    yield from world.cluster.logs


def values_of(world: World, tp: TopicPartition) -> dict[int, bytes | None]:
    """The values of a log by offset. Raises AssertionError for a batch that cannot be decoded."""
    found: dict[int, bytes | None] = {}
    for each in read_records(tp, world.cluster.logs.log(tp)):
        assert not isinstance(each, UnreadableBatch), each
        assert each.offset not in found, f"{tp} has offset {each.offset} twice"
        found[each.offset] = each.value
    return found


# ---- logs ----------------------------------------------------------------------------------------


def offsets_are_in_order(world: World, model: DataModel) -> None:
    """start <= last stable offset <= high watermark <= end (DP-LOG-04; Kafka's UnifiedLog)."""
    for tp, data in _logs(world):
        log = data.log
        offsets = (log.start_offset, log.last_stable_offset, log.high_watermark, log.end_offset)
        assert list(offsets) == sorted(offsets), (tp, offsets)


def batches_follow_each_other(world: World, model: DataModel) -> None:
    """Batches have ascending offsets, the last one ends the log, and the bytes that the cluster
    counts are theirs (DP-LOG-03, DP-LOG-14)."""
    size = 0
    for tp, data in _logs(world):
        log, end = data.log, None
        for batch in log.storage.batches():
            header = batch.header
            assert end is None or header.base_offset >= end, (tp, header, end)
            end = header.last_offset + 1
        assert end is None or end <= log.end_offset, (tp, end, log.end_offset)
        assert end in (None, log.end_offset) or log.start_offset == log.end_offset, (tp, end)
        size += log.storage.size
    assert size == world.cluster.logs.bytes, (size, world.cluster.logs.bytes)


def the_watermark_falls_only_by_truncation(world: World, model: DataModel) -> None:
    """The high watermark and the start of a log do not go back, unless the log was cut
    (DP-LOG-06)."""
    for tp, data in _logs(world):
        log, known = data.log, model.watermarks.get(tp, 0)
        least = min(known, model.cut.get(tp, known))
        assert log.high_watermark >= least, (tp, known, model.cut.get(tp), log.high_watermark)
        assert log.start_offset >= model.starts.get(tp, 0), (tp, model.starts, log.start_offset)
        model.watermarks[tp], model.starts[tp] = log.high_watermark, log.start_offset
    model.cut.clear()


def a_follower_is_not_ahead(world: World, model: DataModel) -> None:
    """A follower holds a beginning of its leader's log, and an in-sync one has at least what is
    below the high watermark (DP-LOG-06, DP-LOG-11)."""
    for tp, data in _logs(world):
        partition = world.cluster.topics.partition(*tp)
        for broker in partition.hosts:
            end = data.replication.end_of(broker, partition)
            assert end <= data.log.end_offset, (tp, broker, end, data.log.end_offset)
            if broker in partition.isr and partition.leader >= 0:
                assert end >= data.log.high_watermark, (tp, broker, end, data.log.high_watermark)


def acknowledged_records_are_there(world: World, model: DataModel) -> None:
    """A record that was acknowledged is in the log at the offset that the response gave, until
    retention or a cut that the action log tells removes it."""
    for tp, batches in model.acknowledged.items():
        if not batches:
            continue
        log, values = world.cluster.logs.log(tp), values_of(world, tp)
        for offset, (batch, index) in batches.items():
            if offset >= log.start_offset:
                wanted = batch.values[index]
                assert values.get(offset) == wanted, (tp, offset, batch, values.get(offset))


def nothing_is_appended_twice(world: World, model: DataModel) -> None:
    """A batch is in the log as often as it was sent, and one of an idempotent producer once
    (KIP-98), unless a tester let the log forget the producer."""
    for tp, _ in _logs(world):
        if tp[0] == OFFSETS_TOPIC:
            continue
        counts = Counter(value for value in values_of(world, tp).values() if value is not None)
        for value, count in counts.items():
            number = value.partition(b":")[0]
            batch = model.batches.get(int(number)) if number.isdigit() else None
            if batch is None:
                continue
            once = batch.producer_id >= 0 and tp not in model.forgotten
            assert count <= (1 if once else batch.sent), (tp, batch, count)


def acknowledged_records_are_lost_only_unclean(world: World, actions: Sequence[Action]) -> None:
    """Records below the high watermark are lost by unclean elections alone, or by a tester
    (KIP-106; Kafka's documentation of acks)."""
    for action in actions:
        change = action.change
        if not isinstance(change, RecordsLost) or not change.acknowledged:
            continue
        name = change.topic
        unclean = name in world.cluster.topics and (
            world.cluster.configs.topic(name, _UNCLEAN).value == "true"
        )
        assert action.cause in _LOSING or unclean or world.unclean_asked, action


# ---- groups and offsets --------------------------------------------------------------------------


def generations_only_grow(world: World, model: DataModel) -> None:
    """A group's generation does not go back while its coordinator has the group."""
    every = world.cluster.groups.groups
    groups = {name: each for name, each in every.items() if isinstance(each, Group)}
    for name, group in groups.items():
        known = model.generations.get(name)
        if known is not None and known[0] is group:
            assert group.generation >= known[1], (name, known, group.generation)
        model.generations[name] = (group, group.generation)
    for name in [each for each in model.generations if each not in groups]:
        del model.generations[name]


def committed_offsets_stay(world: World, model: DataModel) -> None:
    """A committed offset is what the coordinator has, until it is committed anew or deleted."""
    for group, known in model.committed.items():
        found = world.cluster.offsets[group]
        for tp, committed in known.items():
            here = found.get(tp)
            offset = None if here is None else here.offset
            allowed = {committed, *model.in_doubt.get((group, tp), ())}
            assert offset in allowed, (group, tp, offset, allowed)


DATA_ALWAYS: Final[tuple[Callable[[World, DataModel], None], ...]] = (
    offsets_are_in_order,
    batches_follow_each_other,
    the_watermark_falls_only_by_truncation,
    a_follower_is_not_ahead,
    acknowledged_records_are_there,
    nothing_is_appended_twice,
    generations_only_grow,
    committed_offsets_stay,
)
