"""``snapshot`` and ``reset``: whatever happens to a cluster in between is undone."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack

import pytest

from kproto.dialects import dialect
from kproto.messages import ListPartitionReassignmentsResponse
from mockbroker import MockCluster
from mockbroker.errors import ClusterError, FaultError
from mockbroker.simulation.state.snapshots import Snapshot
from tests.mockbroker.filled_requests import filled_request
from tests.mockbroker.operation_calls import CALLS, prepare
from tests.mockbroker.wire import connected
from tests.support.full import quick
from tests.support.seeds import generator

KAFKA = dialect("kafka")
APART = {
    "enum.EnumType",
    "functools._lru_cache_wrapper",
    "itertools.count",
    "kproto.error_codes.ErrorCode",
    "mockbroker.options.ClusterOptions",
    "mockbroker.serving.dispatch.Dispatcher",
    "msgspec._core.StructMeta",
    "operator.attrgetter",
    "types.UnionType",
    "uuid.UUID",
}
"""What a snapshot may meet and not follow: it never changes, or has no effect."""


def state_of(mock: MockCluster) -> Snapshot:
    dispatcher = mock._dispatcher
    return Snapshot(mock.cluster, dispatcher.faults, dispatcher.scripts, mock._paces)


def differences(before: Snapshot, after: Snapshot) -> list[tuple[object, object, object]]:
    """The objects that hold something else, with what they held before and hold now."""
    ids = before.held.keys() | after.held.keys()
    found = [(each, before.held.get(each), after.held.get(each)) for each in ids]
    return [each for each in found if each[1] != each[2]]


async def answers(mock: MockCluster) -> dict[int, bytes]:
    """The answers to a request of each API that changes nothing."""
    found = {}
    for key in sorted(READING & set(mock.served)):
        async with connected(mock, mock.addresses[1]) as wire:
            version = mock.served[key].highest
            answer = await wire.ask(filled_request(KAFKA.apis[key].request, version), version)
            found[key] = answer.encode(version)
    return found


READING = {2, 3, 9, 10, 15, 16, 18, 23, 29, 32, 35, 46, 48, 50, 55, 57, 60, 61, 65, 66, 69, 75, 77}


async def disturb(
    mock: MockCluster, rng: random.Random, steps: int, wires: AsyncExitStack
) -> list[str]:
    """Carry out operations and send requests, some of which go on waiting for an answer. Return
    what was not refused."""
    done = []
    for _ in range(steps):
        if rng.random() < 0.5:
            text = rng.choice([each for each in CALLS if each not in ("snapshot", "reset")])
            try:
                await mock.run_command(text)
            except ClusterError:
                continue
            done.append(text)
            continue
        live = [broker.broker_id for broker in mock.cluster.brokers.values() if broker.live]
        key = rng.choice(sorted(mock.served))
        version = rng.choice(list(mock.served[key]))
        try:
            wire = await wires.enter_async_context(
                connected(mock, mock.addresses[rng.choice(live)])
            )
            await wire.ask("ApiVersions", 0)  # the broker has accepted the connection
            wire.send(wire.frame(filled_request(KAFKA.apis[key].request, version), version))
            async with asyncio.timeout(0.02):
                await wire.receive()
        except (OSError, asyncio.IncompleteReadError):  # TimeoutError is an OSError
            continue
        done.append(KAFKA.apis[key].name)
    return done


@pytest.mark.requirement("DP-CTL-61")
@pytest.mark.parametrize("profile", ["kafka-2.4", "kafka-4.4"])
async def test_whatever_happens_is_undone(profile: str) -> None:
    rng = generator("snapshots")
    async with MockCluster(4, topics=["foo=1,2,3"], profile=profile, clock="manual") as mock:
        if profile == "kafka-4.4":
            prepare(mock)
        await mock.snapshot()
        shown = await answers(mock)
        await mock.reset()
        for _ in range(quick(6, sampled=3)):
            before = state_of(mock)
            async with AsyncExitStack() as wires:
                done = await disturb(mock, rng, 30, wires)
                assert state_of(mock).held != before.held, done
                await mock.reset()
            after = state_of(mock)
            assert differences(before, after) == [], done
            others = {f"{each.__module__}.{each.__qualname__}" for each in after.skipped}
            assert others <= APART
            assert len(mock.journal) == 0
            assert await answers(mock) == shown, done
            await mock.reset()


@pytest.mark.requirement("DP-CTL-61")
async def test_rules_scripts_and_time_are_part_of_a_snapshot() -> None:
    async with MockCluster(1, topics=["foo:1:1"]) as mock:
        with pytest.raises(ClusterError, match="there is no snapshot to return to"):
            await mock.reset()
        kept = mock.fault(api=45, error=41, name="kept")
        mock.script(46, ListPartitionReassignmentsResponse(error_code=7))
        await mock.snapshot()
        later = mock.fault(api=46, error=41)
        hit = asyncio.ensure_future(mock.wait_for_hit(later))
        mock.clear_scripts()
        kept.end()
        mock.advance("1h")
        seen = mock.cluster.timers.now_ms
        await mock.reset()
        with pytest.raises(FaultError):
            await hit
        assert mock.faults == [kept]
        assert kept.live
        async with connected(mock, mock.addresses[1]) as wire:
            answer = await wire.ask("ListPartitionReassignments", 0, topics=None)
        assert answer.error_code == 7
        mock.follow_clock()
        assert mock.cluster.timers.now_ms < seen


@pytest.mark.requirement("DP-CTL-61")
async def test_a_test_goes_on_waiting_for_a_group() -> None:
    async with MockCluster(1, topics=["foo:1:1"]) as mock:
        await mock.snapshot()
        waiting = asyncio.ensure_future(mock.wait_for_group("g"))
        await asyncio.sleep(0)
        await mock.reset()
        prepare(mock)
        assert (await waiting).group_id == "g"


@pytest.mark.requirement("DP-CTL-62")
async def test_no_snapshot_of_what_is_elsewhere() -> None:
    async with MockCluster(2, profile="kafka-2.4", inter_broker=True) as mock:
        with pytest.raises(ClusterError, match="no snapshot can be taken: brokers get requests"):
            await mock.snapshot()
