"""What the engine leaves behind: no block, no reference, nothing for the collector to look at."""

import contextlib
import gc
import resource
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import kproto
from benchmarks.workloads import WORKLOADS
from kproto.codec import registry
from kproto.codec.classes import make_message_class
from kproto.codec.structs import NO_TAGS
from kproto.errors import KprotoError
from kproto.messages import ConsumerGroupMemberMetadataValue, HeartbeatRequest, MetadataResponse
from kproto.reference.random_trees import random_tree
from kproto.schema.load import parse_message
from tests.codegen.test_hostile import nested_schema
from tests.support import seeds
from tests.support.instances import to_instance
from tests.support.schemas import released
from tests.support.shaken import shake

LOOPS = 20


def least_growth(once: Callable[[], None], loops: int = LOOPS) -> int:
    """Blocks that ``loops`` rounds leave behind, in the best of some batches of them. Free lists
    fill in one batch or another; a leak grows in each, by ``loops`` and more, so that the first
    that grew by less settles it."""
    grown = loops
    for _ in range(4):
        once()
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(loops):
            once()
        gc.collect()
        grown = sys.getallocatedblocks() - before
        if grown < loops:
            break
    return grown


@contextlib.contextmanager
def collector(enabled: bool) -> Iterator[None]:
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        yield
    finally:
        (gc.enable if before else gc.disable)()


def attempt(call: Callable[..., Any], *args: Any) -> None:
    with contextlib.suppress(KprotoError, Marker):
        call(*args)


class Marker(Exception):
    """Raised in place of an explanation: the engine's own path, without the interpreter."""


def bare_plan(cls: type, version: int) -> Any:
    from kproto.native.compiled import compile_plan

    def give_up(*_args: object) -> Any:
        raise Marker

    return compile_plan(registry.plan_of(cls, version), registry.structs_of(cls), give_up, give_up)


def good_and_bad(name: str, version: int) -> Callable[[], None]:
    """A round of everything that may happen to one message."""
    schema = released()[name]
    cls = kproto.dialect("kafka").message(name)
    rng = seeds.generator(f"memory:{name}:{version}")
    plan = bare_plan(cls, version)
    trees = [random_tree(schema, version, rng, size=40) for _ in range(4)]
    messages = [to_instance(cls, tree, schema) for tree in trees]
    bodies = [message.encode(version) for message in messages]
    damaged = [body[:cut] for body in bodies for cut in range(0, len(body), 7)]
    for body in bodies:
        for _ in range(40):
            changed = bytearray(body)
            changed[rng.randrange(len(body))] = rng.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF))
            damaged.append(bytes(changed))
    wrong = [shake(message, rng) for message in messages for _ in range(40)]

    def once() -> None:
        for data in (*bodies, *damaged):
            attempt(plan.decode, data)
            attempt(plan.validate, data)
            plan.takes(bytearray(data))
        for message in (*messages, *wrong):
            attempt(plan.encode, message)

    return once


@pytest.mark.slow
@pytest.mark.counts_memory
@pytest.mark.parametrize(
    ("name", "version"),
    [("MetadataResponse", 12), ("FetchResponse", 13), ("ApiVersionsResponse", 3),
     ("ConsumerGroupMemberMetadataValue", 0), ("LeaderAndIsrRequest", 3), ("ProduceRequest", 3)],
)  # fmt: skip
def test_no_block_is_left(name: str, version: int) -> None:
    assert least_growth(good_and_bad(name, version)) < LOOPS


@pytest.mark.slow
@pytest.mark.counts_memory
def test_large_buffers_are_freed() -> None:
    """What goes past the object allocator: lists and bytes above half a kilobyte."""
    workload = next(each for each in WORKLOADS if each.key == "b")
    message, body = workload.message(), workload.body()
    plan = bare_plan(type(message), workload.version)
    wrong = workload.message()
    wrong.topics[-1].partitions[-1].leader_id = "three"
    # The sizes of the buffer that grows, as of one that is known to be large enough.
    plans = [plan, *(bare_plan(type(message), workload.version) for _ in range(3))]

    def once() -> None:
        for each in plans:
            attempt(each.encode, wrong)
            attempt(each.encode, message)
            attempt(each.decode, body[:-1])
            attempt(each.decode, body)

    for _ in range(20):
        once()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100):
        once()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 8 * 1024  # KiB on Linux; one leak of four is over 16 MiB by now


@pytest.mark.slow
def test_references_are_given_back() -> None:
    message = MetadataResponse.decode(MetadataResponse().encode(9), 9)
    shared = (NO_TAGS, None, MetadataResponse, type(message))
    body = next(each for each in WORKLOADS if each.key == "b").body()
    attempt(MetadataResponse.decode, body[:-3], 9)  # what explains it is made here
    gc.collect()
    before = [sys.getrefcount(each) for each in shared]
    for _ in range(60):
        decoded = MetadataResponse.decode(body, 9)
        decoded.encode(9)
        attempt(MetadataResponse.decode, body[:-3], 9)
    del decoded
    gc.collect()
    after = [sys.getrefcount(each) for each in shared]
    assert all(abs(new - old) < 30 for new, old in zip(after, before, strict=True))


@pytest.mark.counts_memory
def test_nested_counts_reserve_nothing() -> None:
    """Eight levels that each announce a million elements and a half, which the bytes left could
    hold for all but the last: none of the lists is made."""
    depth = 8
    cls = make_message_class(parse_message(nested_schema(depth)))
    size = 4_000_000
    announced = b"\xe1\xc6\x5b"  # a compact count: 1,500,001
    plan = bare_plan(cls, 0)
    data = announced * depth + bytes(size - 4 * depth)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        with pytest.raises(Marker):
            plan.decode(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4 * 1024


@pytest.mark.counts_memory
def test_plans_are_freed() -> None:
    """Compiled, refused half way, and part of a cycle with the class that keeps them."""
    from kproto.native import _engine, describe

    plan, structs = registry.plan_of(MetadataResponse, 12), registry.structs_of(MetadataResponse)
    rows = describe.describe(plan, structs)
    broken = [(*rows[:at], (dict, *rows[at][1:]), *rows[at + 1 :]) for at in range(len(rows))]
    broken += [(*rows[:-1], (*rows[-1][:-1], ((1, 2),))), (*rows, 5), ()]

    def once() -> None:
        _engine.Plan(rows, len, len)
        for each in broken:
            try:
                _engine.Plan(each, len, len)
            except (TypeError, ValueError):
                continue
            raise AssertionError("taken")

        class Draft(HeartbeatRequest):
            pass

        assert Draft.decode(Draft(group_id="g").encode(4), 4) == Draft(group_id="g")
        registry._plans.pop((Draft, 4))
        registry._compiled.pop((Draft, 4))

    assert least_growth(once, 250) < 250


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collectors_state_is_left_alone(enabled: bool) -> None:
    once = good_and_bad("MetadataResponse", 12)
    with collector(enabled):
        once()
        assert gc.isenabled() is enabled


@pytest.mark.counts_memory
def test_decoded_messages_are_not_in_the_collectors_view() -> None:
    body = next(each for each in WORKLOADS if each.key == "b").body()
    MetadataResponse.decode(body, 9)
    gc.collect()
    with collector(False):
        before = len(gc.get_objects())
        kept = MetadataResponse.decode(body, 9)
        assert len(gc.get_objects()) - before < 10
    # Nothing is lost by it: a message without its last reference is gone without a collection.
    with collector(False):
        blocks = sys.getallocatedblocks()
        del kept
        assert sys.getallocatedblocks() < blocks - 1000


def test_nothing_half_made_is_seen() -> None:
    """A collection at every allocation, which looks at all there is while a message is read."""
    once = good_and_bad("ConsumerGroupMemberMetadataValue", 0)
    body = next(each for each in WORKLOADS if each.key == "a").body()
    cls = kproto.dialect("kafka").message("ApiVersionsResponse")
    expected = cls.decode(body, 3)
    seen = 0

    def look(_phase: str, _info: object) -> None:
        nonlocal seen
        for each in gc.get_objects():
            if type(each) is list:
                seen += len(each[:3])
        seen += 1

    threshold = gc.get_threshold()
    gc.callbacks.append(look)
    gc.set_threshold(1)
    try:
        with collector(True):
            assert cls.decode(body, 3) == expected
            value = ConsumerGroupMemberMetadataValue(subscribed_topic_names=["a", "b"])
            assert ConsumerGroupMemberMetadataValue.decode(value.encode(0), 0) == value
    finally:
        gc.callbacks.remove(look)
        gc.set_threshold(*threshold)
    once()
    assert seen
