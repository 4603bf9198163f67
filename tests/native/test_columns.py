"""Columns in C: what it refuses to compile, what it leaves behind, what others may do meanwhile."""

import gc
import resource
import sys
import tracemalloc
from typing import Any

import pytest

import kproto
from benchmarks.workloads import WORKLOADS
from kproto.codec import registry
from kproto.codec.classes import make_message_class
from kproto.columns import MOST_BYTES, select
from kproto.errors import KprotoError
from kproto.messages import (
    ConsumerGroupMemberMetadataValue,
    FetchResponse,
    HeartbeatRequest,
    MetadataResponse,
)
from kproto.reference.random_trees import random_tree
from kproto.schema.load import parse_message
from tests.codegen.test_hostile import nested_schema
from tests.columns.exploded import lines
from tests.native.burn import damage
from tests.native.test_memory import LOOPS, least_growth
from tests.support import seeds
from tests.support.instances import to_instance
from tests.support.schemas import released

GOOD = HeartbeatRequest(group_id="g", generation_id=1, member_id="m").encode(4)


def plan_of(cls: Any, version: int) -> Any:
    compiled = registry.compiled_plan(cls, version)
    assert compiled is not None
    return compiled


def attempt(selection: Any, *args: Any) -> None:
    try:
        selection.read(*args)
    except (KprotoError, BufferError):
        return


@pytest.mark.slow
@pytest.mark.counts_memory
@pytest.mark.parametrize(
    ("name", "version"),
    [("MetadataResponse", 12), ("FetchResponse", 13), ("ApiVersionsResponse", 3),
     ("ConsumerGroupMemberMetadataValue", 0), ("LeaderAndIsrRequest", 3)],
)  # fmt: skip
def test_no_block_is_left(name: str, version: int) -> None:
    """Good bodies and bad ones, taken back and raised, past the limit, of any buffer."""
    schema = released()[name]
    cls = kproto.dialect("kafka").message(name)
    rng = seeds.generator(f"columns:memory:{name}:{version}")
    trees = [random_tree(schema, version, rng, size=40) for _ in range(2)]
    bodies = [to_instance(cls, tree, schema).encode(version) for tree in trees]
    bodies += [damage(body, rng) for body in bodies for _ in range(6)]
    selections = [select(cls, version, paths) for paths in lines(schema)]
    views = [bytearray(body) for body in bodies]

    def once() -> None:
        for selection in selections:
            assert type(selection._compiled).__name__ == "Selection"
            for limit in (4, 300, MOST_BYTES):
                selection._compiled.read(tuple(bodies), limit, True)
            attempt(selection, bodies)
            selection.read(views, errors="collect")
            attempt(selection, [bodies[0], memoryview(b"....")[::2]])

    assert least_growth(once) < LOOPS


@pytest.mark.slow
@pytest.mark.counts_memory
def test_large_buffers_are_freed() -> None:
    workload = next(each for each in WORKLOADS if each.key == "b")
    body = workload.body()
    paths = ["topics.name", "topics.partitions.leader_id", "topics.partitions.isr_nodes"]
    selection = select(MetadataResponse, 9, paths)
    bodies = [body] * 20

    def once() -> None:
        selection.read(bodies)
        attempt(selection, [*bodies, body[:-1]])
        selection._compiled.read(tuple(bodies), 100_000, False)

    for _ in range(5):
        once()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(40):
        once()
    # KiB on Linux; one leak of any column is over 8 MiB by now
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4 * 1024


def test_references_are_given_back() -> None:
    selection = select(HeartbeatRequest, 4, ["group_id", "group_instance_id"])
    bad = GOOD + b"\0"
    mutable = bytearray(bad)
    shared = (GOOD, bad, mutable, None, selection._compiled, plan_of(HeartbeatRequest, 4))

    def once() -> None:
        selection.read([GOOD, bad, mutable, GOOD], errors="collect")
        attempt(selection, [GOOD, mutable])
        select(HeartbeatRequest, 4, ["group_id"])

    once()
    gc.collect()
    before = [sys.getrefcount(each) for each in shared]
    for _ in range(60):
        once()
    gc.collect()
    after = [sys.getrefcount(each) for each in shared]
    assert all(abs(new - old) < 30 for new, old in zip(after, before, strict=True))
    mutable.append(1)  # no view of it is left open


@pytest.mark.counts_memory
def test_announced_counts_reserve_nothing() -> None:
    """Eight levels that each announce a million elements and a half."""
    depth = 8
    cls = make_message_class(parse_message(nested_schema(depth)))
    schema = registry.schema_of(cls)
    size = 4_000_000
    data = b"\xe1\xc6\x5b" * depth + bytes(size - 4 * depth)
    selection = select(cls, 0, max(lines(schema), key=len))
    selection.read([], errors="collect")
    compiled = selection._compiled
    tracemalloc.start()
    try:
        failed = compiled.read((data,), MOST_BYTES, True)[3]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert failed == [(0, data)]
    assert peak < 64 * 1024


def test_a_buffer_that_runs_python_changes_nothing_under_it() -> None:
    """From CPython 3.12 on a class may hand out its buffer by Python code."""
    bodies: list[Any] = [GOOD, GOOD]
    selection = select(HeartbeatRequest, 4, ["group_id"])

    class Strange:
        def __buffer__(self, _flags: int) -> memoryview:
            bodies.clear()
            gc.collect()
            assert selection.read([GOOD]).rows == 1
            return memoryview(GOOD)

    bodies.append(Strange())
    bodies.append(GOOD)
    if sys.version_info >= (3, 12):
        assert selection.read(bodies).rows == 4
        assert bodies == []
    else:
        with pytest.raises(TypeError):
            selection.read(bodies)


def test_a_selection_outlives_what_it_was_made_of() -> None:
    class Draft(HeartbeatRequest):
        pass

    selection = select(Draft, 4, ["member_id"])
    registry._plans.pop((Draft, 4))
    registry._compiled.pop((Draft, 4))
    compiled = selection._compiled
    del selection, Draft
    gc.collect()
    assert compiled.read((GOOD,), MOST_BYTES, False)[0] == 1


@pytest.mark.counts_memory
def test_selections_are_freed() -> None:
    """Compiled, refused half way, and part of a cycle with the class that keeps them."""
    plan = plan_of(MetadataResponse, 9)

    def once() -> None:
        select(MetadataResponse, 9, ["topics.name", "topics.partitions.leader_id"])
        for levels, count in BAD:
            try:
                plan.select(levels, count)
            except WRONG:
                continue
            raise AssertionError("taken")

        class Draft(HeartbeatRequest):
            pass

        type.__setattr__(Draft, "kept", select(Draft, 4, ["member_id"]))
        registry._plans.pop((Draft, 4))
        registry._compiled.pop((Draft, 4))

    assert least_growth(once, 100) < 100


WRONG = (ValueError, TypeError, OverflowError, MemoryError)


def leaf(column: int, path: Any, default: Any = None) -> Any:
    return column, path, default


# MetadataResponse v9: throttle_time_ms 0, brokers 1, cluster_id 2, controller_id 3, topics 4 {
# error_code 0, name 1, is_internal 2, partitions 3 {...}}
BAD: list[tuple[Any, Any]] = [
    ((), 1),
    ((((), ()),), 0),
    ((((), ()),), -1),
    ((((), ()),), 2**62),
    ((((), ()),), 1),  # a column is missing
    ((((), (leaf(1, (0,)),)),), 1),
    ((((), (leaf(-1, (0,)),)),), 1),
    ((((), (leaf(0, (0,)), leaf(0, (2,)))),), 1),
    ((((), (leaf(0, (0,)), leaf(1, (0,)))),), 2),
    ((((), (leaf(0, ()),)),), 1),
    ((((), (leaf(0, (-1,)),)),), 1),
    ((((), (leaf(0, (99,)),)),), 1),
    ((((), (leaf(0, (2**70,)),)),), 1),
    ((((), (leaf(0, ("0",)),)),), 1),
    ((((), (leaf(0, (0, 0)),)),), 1),  # no struct
    ((((), (leaf(0, (4, 1)),)),), 1),  # an array of structs
    ((((), (leaf(0, (4,)),)),), 1),
    ((((), (leaf(0, (0,), "0"),)),), 1),
    ((((), (leaf(0, (0,), b"\0\0\0"),)),), 1),
    ((((), (leaf(0, (0,), bytes(5)),)),), 1),
    ((((), (leaf(0, (2,), b"\x02\xff"),)),), 1),  # not UTF-8
    ((((), (leaf(0, (2,), b"\xff"),)),), 1),
    ((((4,), (leaf(0, (0,)),)),), 1),  # a level is missing
    ((((4,), (leaf(0, (0,)),)), ((3,), ())), 1),
    ((((0,), (leaf(0, (2,)),)), ((), ())), 1),  # a level that is no array
    ((((), (leaf(0, (2,)),)), ((), ())), 1),
    ((((2,), (leaf(0, (2,)),)), ((), ())), 1),
    ((5,), 1),
    ((((), (5,)),), 1),
    (((), ()), 1),
    ([((), (leaf(0, (0,)),))], 1),
    ((([], (leaf(0, (0,)),)),), 1),
]


@pytest.mark.parametrize(("levels", "count"), BAD)
def test_what_is_no_selection(levels: Any, count: Any) -> None:
    with pytest.raises(WRONG):
        plan_of(MetadataResponse, 9).select(levels, count)


def test_read_is_called_as_it_is_meant() -> None:
    compiled: Any = select(HeartbeatRequest, 4, ["group_id"])._compiled
    for wrong in (([GOOD], 9, False), ((GOOD,),), ((GOOD,), "9", False), ((), 3, False),
                  ((), 2**31, False), ((), 2**80, True)):  # fmt: skip
        with pytest.raises((TypeError, ValueError, OverflowError)):
            compiled.read(*wrong)
    with pytest.raises(TypeError):
        type(compiled)()


def test_engines_that_disagree_leave_it_to_decode() -> None:
    """The engine may be too strict and never too lax: what it wrongly refused is read by Python."""
    selection = select(HeartbeatRequest, 4, ["group_id"])

    class Strict:
        export = None

        def read(self, bodies: tuple[Any, ...], *_rest: Any) -> Any:
            return 0, b"", (), [(0, bodies[0])], -1

    selection._compiled = Strict()
    assert selection.read([GOOD]).to_pydict() == {"frame": [0], "group_id": ["g"]}


def test_shapes_of_defaults_and_nulls() -> None:
    """Structs that may be null, tagged structs, fields of other versions: C compiles them all."""
    member = "classic_member_metadata.supported_protocols.name"
    nested = select(ConsumerGroupMemberMetadataValue, 0, [member, "rack_id"])
    assert nested.read([ConsumerGroupMemberMetadataValue().encode(0)]).rows == 0
    prefix = "responses.partitions.current_leader."
    for version in (4, 12, 13):
        select(FetchResponse, version, [prefix + "leader_id", prefix + "leader_epoch"])


def column(
    *, name: Any = "a", format: Any = "i", buffers: Any = (None, b""), below: Any = ()
) -> Any:
    return name, format, False, 0, 0, buffers, below


@pytest.mark.parametrize(
    "wrong",
    [
        5,
        (),
        column(name=5),
        column(name="a\0b"),
        column(name="\ud800"),
        column(buffers=(None,) * 4),
        column(buffers=(bytearray(),)),
        column(buffers=[]),
        column(below=(column(), 5)),
        column(below=(column(), column(buffers=(5,)), column())),
        column(below=5),
    ],
)
def test_what_is_not_exported(wrong: Any) -> None:
    export: Any = select(HeartbeatRequest, 4, ["group_id"])._compiled.export
    with pytest.raises((TypeError, ValueError)):
        export(wrong)
    assert len(export(column(below=(column(), column(name=""))))) == 2


@pytest.mark.counts_memory
def test_exports_are_freed() -> None:
    table = select(MetadataResponse, 9, ["topics.name", "topics.partitions.isr_nodes"]).read([])
    export: Any = table.export
    half = column(below=(column(), column(buffers=(bytes(4), 5)), column()))

    def once() -> None:
        table.__arrow_c_array__()
        try:
            export(half)
        except TypeError:
            return
        raise AssertionError("taken")

    assert least_growth(once, 100) < 100
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(20_000):
        once()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 2 * 1024  # KiB on Linux
