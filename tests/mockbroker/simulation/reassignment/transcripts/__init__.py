"""Scenarios of reassignments as transcripts: commands, and below each what it must bring about.

    [K455-43 A-10] a cancellation is not a revert
    on kip-455-old kip-455-new
    alter 4,5,6
    join 4
    alter none
      foo 1,2,3,4
      ...
    show
      foo-0 R=1,2,3,4 I=1,2,3,4 leader=1 epoch=2

The bracket names requirements, ``on`` the reassignment controllers that must all behave so.
Indented lines are the whole output of the command above them, where ``...`` stands for any lines.
A command without indented lines may print anything but an error. ``#`` begins a comment.

A command that acts prints what entered the action log, one line an entry. ``foo-0`` is implied
wherever a partition is expected. A text is JSON of a znode, to the end of the line.

===========================  =======================================================================
on NAME... [TOPIC...]        a cluster of six brokers; a topic is ``foo=1,2,3/4,5``
alter [TP=]REPLICAS...       AlterPartitionReassignments; ``none`` cancels
join [TP] BROKER...          replicas catch up, and join the ISR
leave [TP] BROKER...         they fall behind
stop, start BROKER...        brokers stop and come back
failover BROKER              the controller moves there
elect                        the preferred leaders are elected
config NAME=VALUE            sets a config of topic foo
plan, queue, extra ENTRY...  writes a plan znode; an entry is ``[TP=]REPLICAS[<ORIGINALS]``
request [TP=]REPLICAS...     creates a request znode (kip-236-old)
cancel, resume               creates or removes the znode that cancels
write PATH TEXT              writes a znode; ``remove PATH`` deletes it
show [TP...]                 prints partitions as the controller remembers them
walk                         prints every value that foo-0's replicas, ISR and target have had
list                         prints what ListPartitionReassignments answers
view BROKER                  prints foo-0's replicas and ISR as that broker's metadata has them
znode PATH                   prints what a znode says, as the action log is printed
text PATH, children PATH     prints a znode's text, or the names below it
warnings                     prints the warnings since the last time, and since the beginning
===========================  =======================================================================

After a change of behaviour that is meant, write the new outputs, and read the difference:

    python -m tests.mockbroker.simulation.reassignment.transcripts
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from kproto.error_codes import ErrorCode
from kproto.znodes.plan_znodes import (
    CANCEL_REASSIGNMENT_IN_PROGRESS,
    REASSIGN_PARTITIONS,
    REASSIGN_PARTITIONS_QUEUE,
)
from kproto.znodes.request_znodes import REASSIGN_CANCEL, REASSIGN_PARTITIONS_EXTRA, REQUEST_PREFIX
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import (
    LeaderAndIsrSent,
    PartitionChanged,
    ReplicasMoved,
    StopReplicaSent,
    UpdateMetadataSent,
    Warned,
    ZnodeWritten,
)
from tests.mockbroker.simulated import simulated_cluster

__all__ = ["FOLDER", "Scenario", "cases", "entries", "parse", "play", "recorded"]

FOLDER: Final = Path(__file__).parent
_CANCEL: Final = {"kip-236-new": CANCEL_REASSIGNMENT_IN_PROGRESS}

Tp = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Step:
    """``expected`` is empty where the output does not count."""

    command: str
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scenario:
    requirements: tuple[str, ...]
    title: str
    controllers: tuple[str, ...]
    topics: tuple[str, ...]
    steps: tuple[Step, ...]


# ---- the text ------------------------------------------------------------------------------------


def parse(text: str) -> list[Scenario]:
    """Raises ValueError."""
    blocks: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("["):
            blocks.append([])
        if line.strip() and not line.startswith("#"):
            blocks[-1].append(line)
    return [_scenario(block) for block in blocks]


def _scenario(block: Sequence[str]) -> Scenario:
    requirements, _, title = block[0][1:].partition("] ")
    verb, *words = block[1].split()
    if verb != "on" or not title:
        raise ValueError(f"{block[0]}: begin with [requirements] title, then on")
    steps: list[Step] = []
    for line in block[2:]:
        if line.startswith("  "):
            steps[-1] = replace(steps[-1], expected=(*steps[-1].expected, line[2:]))
        else:
            steps.append(Step(line, ()))
    return Scenario(
        tuple(requirements.split()),
        title,
        tuple(each for each in words if "=" not in each),
        tuple(each for each in words if "=" in each) or ("foo=1,2,3",),
        tuple(steps),
    )


def cases(name: str) -> Any:
    """A parametrization: each scenario of the file, on each of its controllers."""
    return pytest.mark.parametrize(
        ("scenario", "controller"),
        [
            pytest.param(
                scenario,
                controller,
                id=scenario.title if len(scenario.controllers) == 1 else
                f"{scenario.title}, {controller}",
                marks=[pytest.mark.requirement(*scenario.requirements)],
            )
            for scenario in parse((FOLDER / f"{name}.txt").read_text())
            for controller in scenario.controllers
        ],
    )  # fmt: skip


# ---- running it ----------------------------------------------------------------------------------


def play(scenario: Scenario, controller: str) -> None:
    """Raises AssertionError at the first step that prints something else."""
    world = _World(
        simulated_cluster(6, topics=scenario.topics, reassignment=controller), controller
    )
    for step in scenario.steps:
        output = world.run(step.command)
        if step.expected:
            told = "\n  ".join([step.command, *output])
            assert _matches(step.expected, output), f"{step.command}, not as expected:\n{told}"
        else:
            errors = [line for line in output if line.startswith("error ")]
            assert not errors, f"{step.command}: {errors}"


def _matches(expected: Sequence[str], output: Sequence[str]) -> bool:
    if not expected:
        return not output
    if expected[0] == "...":
        return any(_matches(expected[1:], output[skip:]) for skip in range(len(output) + 1))
    if expected[0] == "nothing":
        return not output
    return bool(output) and expected[0] == output[0] and _matches(expected[1:], output[1:])


class _World:
    """A cluster, and the commands of scenarios."""

    def __init__(self, cluster: Cluster, controller: str) -> None:
        self._cluster = cluster
        self._cancel = _CANCEL.get(controller, REASSIGN_CANCEL)
        self._since = 0

    def run(self, command: str) -> list[str]:
        verb, _, rest = command.partition(" ")
        printing = getattr(self, f"_print_{verb}", None)
        if printing is not None:
            return list(printing(rest))
        since = len(self._cluster.log)
        try:
            errors = list(getattr(self, f"_do_{verb}")(rest) or ())
        except ClusterError as error:
            errors = [f"error {error}"]
        return errors + entries(self._cluster, since)

    # ---- commands that act -------------------------------------------------------------------

    def _do_alter(self, rest: str) -> Iterator[str]:
        rows: dict[str, list[tuple[int, list[int] | None]]] = {}
        for word in rest.split():
            (name, index), ids = _assignment(word)
            rows.setdefault(name, []).append((index, None if ids == "none" else _brokers(ids)))
        result = self._cluster.reassignments.alter(list(rows.items()))
        for topic in result.topics:
            for row in topic.partitions:
                if row.error_code:
                    text = "" if row.error_message is None else f": {row.error_message}"
                    name = ErrorCode(row.error_code).name
                    yield f"error {topic.name}-{row.partition_index} {name}{text}"

    def _do_join(self, rest: str) -> None:
        self._each(rest, Operations(self._cluster).join_isr)

    def _do_leave(self, rest: str) -> None:
        self._each(rest, Operations(self._cluster).leave_isr)

    def _each(self, rest: str, step: Callable[[Tp, int], object]) -> None:
        tps, brokers = _tps_and_brokers(rest)
        for broker in brokers:
            step(tps[0], broker)

    def _do_stop(self, rest: str) -> None:
        for broker in rest.split():
            Operations(self._cluster).stop_broker(int(broker))

    def _do_start(self, rest: str) -> None:
        for broker in rest.split():
            Operations(self._cluster).start_broker(int(broker))

    def _do_failover(self, rest: str) -> None:
        Operations(self._cluster).failover(int(rest))

    def _do_elect(self, _: str) -> None:
        self._cluster.elections.elect(0, None)

    def _do_config(self, rest: str) -> None:
        name, _, value = rest.partition("=")
        self._cluster.config_changes.alter_incrementally([(2, "foo", [(name, 0, value)])])

    def _do_plan(self, rest: str) -> None:
        Operations(self._cluster).write_znode(REASSIGN_PARTITIONS, _plan(rest))

    def _do_queue(self, rest: str) -> None:
        Operations(self._cluster).write_znode(REASSIGN_PARTITIONS_QUEUE, _plan(rest))

    def _do_extra(self, rest: str) -> None:
        Operations(self._cluster).write_znode(REASSIGN_PARTITIONS_EXTRA, _plan(rest))

    def _do_request(self, rest: str) -> None:
        topics: dict[str, dict[str, list[int]]] = {}
        for word in rest.split():
            (name, index), ids = _assignment(word)
            topics.setdefault(name, {})[str(index)] = _brokers(ids)
        text = json.dumps({"version": 1, "assignments": topics})
        Operations(self._cluster).append_znode(REQUEST_PREFIX, text)

    def _do_cancel(self, _: str) -> None:
        Operations(self._cluster).write_znode(self._cancel, "")

    def _do_resume(self, _: str) -> None:
        Operations(self._cluster).write_znode(self._cancel, None)

    def _do_write(self, rest: str) -> None:
        path, _, text = rest.partition(" ")
        Operations(self._cluster).write_znode(path, text)

    def _do_remove(self, rest: str) -> None:
        Operations(self._cluster).write_znode(rest, None)

    # ---- commands that print -----------------------------------------------------------------

    def _print_show(self, rest: str) -> Iterator[str]:
        for name, index in [_tp(word) for word in rest.split()] or [("foo", 0)]:
            yield f"{name}-{index} {_partition(self._cluster.topics.partition(name, index))}"

    def _print_walk(self, _: str) -> Iterator[str]:
        changed = self._cluster.log.partition_changes("foo", 0)
        for each in [changed[0].before, *(change.after for change in changed)]:
            yield f"R={_ids(each.replicas)} I={_ids(each.isr)}{_target(each)}"

    def _print_list(self, _: str) -> Iterator[str]:
        for topic in self._cluster.reassignments.list_ongoing(None).topics:
            for row in topic.partitions:
                yield (
                    f"{topic.name}-{row.partition_index} {_ids(row.replicas)} "
                    f"adding={_ids(row.adding_replicas)} removing={_ids(row.removing_replicas)}"
                )

    def _print_view(self, rest: str) -> Iterator[str]:
        partition = self._cluster.controller.metadata_view(int(rest)).topics["foo"].partitions[0]
        yield f"R={_ids(partition.replicas)} I={_ids(partition.isr)}"

    def _print_znode(self, rest: str) -> Iterator[str]:
        found = self._cluster.znodes.read(rest)
        yield "none" if found is None else _text(rest, found[0])

    def _print_text(self, rest: str) -> Iterator[str]:
        found = self._cluster.znodes.read(rest)
        yield "none" if found is None else found[0]

    def _print_children(self, rest: str) -> Iterator[str]:
        yield from self._cluster.znodes.children(rest)

    def _print_warnings(self, _: str) -> Iterator[str]:
        actions, self._since = self._cluster.log.since(self._since), len(self._cluster.log)
        yield from (each.change.text for each in actions if isinstance(each.change, Warned))


# ---- partitions, plans, entries of the log -------------------------------------------------------


def _tp(word: str) -> Tp:
    name, _, index = word.rpartition("-")
    return name, int(index)


def _assignment(word: str) -> tuple[Tp, str]:
    tp, _, ids = word.rpartition("=")
    return (_tp(tp) if tp else ("foo", 0)), ids


def _brokers(ids: str) -> list[int]:
    return [int(each) for each in ids.split(",") if each]


def _tps_and_brokers(rest: str) -> tuple[list[Tp], list[int]]:
    words = rest.split()
    tps = [_tp(word) for word in words if "-" in word]
    return tps or [("foo", 0)], [int(word) for word in words if "-" not in word]


def _plan(rest: str) -> str:
    rows: list[dict[str, object]] = []
    for word in rest.split():
        assignment, _, originals = word.partition("<")
        (name, index), ids = _assignment(assignment)
        entry: dict[str, object] = {"topic": name, "partition": index, "replicas": _brokers(ids)}
        rows.append({**entry, "original_replicas": _brokers(originals)} if originals else entry)
    return json.dumps({"version": 1, "partitions": rows})


def entries(cluster: Cluster, since: int) -> list[str]:
    """The action log from an offset on, one line an entry."""
    return [_line(each.change, cluster) for each in cluster.log.since(since)]


def _line(change: Any, cluster: Cluster) -> str:
    match change:
        case ZnodeWritten(path, _, after):
            return f"{_short(path)} {_text(path, after)}"
        case PartitionChanged(topic, _, after):
            return f"memory{_of(topic, after.index)} {_partition(after)}"
        case LeaderAndIsrSent():
            new = " new" if change.is_new else ""
            lists = f"{_target(change)}{_lists(change)}"
            where = f"LeaderAndIsr{_of(change.topic, change.index)}"
            return f"{where} to {_ids(change.to)} {_state(change)}{lists}{new}"
        case UpdateMetadataSent():
            live = {each.broker_id for each in cluster.brokers.values() if each.live}
            to = "all" if set(change.to) == live else _ids(change.to)
            where = f"UpdateMetadata{_of(change.topic, change.index)}"
            return f"{where} to {to} {_state(change)}"
        case StopReplicaSent():
            where = f"StopReplica{_of(change.topic, change.index)}"
            return f"{where} to {_ids(change.to)}{' deleting' if change.delete else ''}"
        case ReplicasMoved():
            return f"{_ids(change.replicas)} -> {change.state}"
        case Warned(text):
            return f"warning: {text}"
    return type(change).__name__


def _short(path: str) -> str:
    for prefix in ("/admin/", "/brokers/topics/"):
        path = path.removeprefix(prefix)
    return path.replace("/partitions/", "/")


def _text(path: str, text: str | None) -> str:
    if not text:
        return "removed" if text is None else "empty"
    if path.startswith("/brokers/topics/"):
        found = json.loads(text)
        if not path.endswith("/state"):
            return " ".join(_ids(replicas) for replicas in found["partitions"].values())
        state = f"I={_ids(found['isr'])} leader={found['leader']} epoch={found['leader_epoch']}"
        return f"{state} T={_ids(found['targetReplicas'])}" if "targetReplicas" in found else state
    try:
        return " ".join(_entry(each) for each in json.loads(text)["partitions"])
    except (ValueError, LookupError, TypeError):
        return text


def _entry(entry: dict[str, Any]) -> str:
    tp = _of(entry["topic"], entry["partition"]).lstrip()
    where = f"{tp}={_ids(entry['replicas'])}" if tp else _ids(entry["replicas"])
    return f"{where}<{_ids(entry['original_replicas'])}" if "original_replicas" in entry else where


def _of(topic: str, index: int) -> str:
    return "" if (topic, index) == ("foo", 0) else f" {topic}-{index}"


def _partition(partition: Any) -> str:
    original = getattr(partition, "original_replicas", ())
    was = "" if original == () else " O=?" if original is None else f" O={_ids(original)}"
    return f"{_state(partition)}{_target(partition)}{was}"


def _state(thing: Any) -> str:
    state = f"R={_ids(thing.replicas)} I={_ids(thing.isr)}"
    return f"{state} leader={thing.leader} epoch={thing.leader_epoch}"


def _target(thing: Any) -> str:
    target = thing.target_replicas if isinstance(thing, LeaderAndIsrSent) else thing.target
    return "" if target is None else f" T={_ids(target)}"


def _lists(change: LeaderAndIsrSent) -> str:
    adding, removing = change.adding, change.removing
    return f" +{_ids(adding)} -{_ids(removing)}" if adding or removing else ""


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))


# ---- writing outputs -----------------------------------------------------------------------------


def recorded(text: str) -> str:
    """The text with the outputs there are now, wherever an output is expected (``?`` asks for one),
    on the first of each scenario's controllers. Lines given as ``...`` are kept if they match."""
    lines: list[str] = []
    for block in _blocks(text):
        lines += _recorded_block(block)
    return "\n".join(lines) + "\n"


def _blocks(text: str) -> Iterator[list[str]]:
    block: list[str] = []
    for line in text.rstrip().splitlines():
        if line.startswith("["):
            yield block
            block = []
        block.append(line)
    yield block


def _recorded_block(block: Sequence[str]) -> list[str]:
    if not block or not block[0].startswith("["):
        return list(block)
    scenario = _scenario([line for line in block if line.strip() and not line.startswith("#")])
    controller = scenario.controllers[0]
    world = _World(
        simulated_cluster(6, topics=scenario.topics, reassignment=controller), controller
    )
    steps = iter(scenario.steps)
    lines: list[str] = []
    for line in block:
        if line.startswith("  "):
            continue
        lines.append(line)
        if not line.strip() or line[0] in "#[" or line.startswith("on "):
            continue
        step = next(steps)
        output = world.run(step.command)
        if step.expected:
            kept = step.expected if _matches(step.expected, output) else output or ["nothing"]
            lines += [f"  {each}" for each in kept]
    return lines
