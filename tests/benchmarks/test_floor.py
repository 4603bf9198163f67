"""The floor's clones, and the messages as construct reads them, are the messages."""

import gc
from typing import Any

import pytest

import kproto
from benchmarks import bench_start, construct_peer
from benchmarks.floor import clone_of
from benchmarks.workloads import WORKLOADS, Workload
from kproto.codec import registry
from kproto.errors import AbsentError
from kproto.messages import HeartbeatRequest
from kproto.reference.random_trees import random_tree
from tests.support import engines, seeds, toolchain
from tests.support.instances import to_instance
from tests.support.schemas import released

BY_KEY = [pytest.param(workload, id=workload.key) for workload in WORKLOADS]


def cloner(cls: type, version: int) -> Any:
    try:
        return clone_of(cls, version)
    except AbsentError as absent:
        toolchain.absent("native", str(absent))


def check_clone(source: Any, clone: Any) -> None:
    """Equal, of new structs and lists, each seen by the collector as the original is."""
    assert type(clone) is type(source)
    if isinstance(source, list) or hasattr(source, "__struct_fields__"):
        assert clone is not source
        assert gc.is_tracked(clone) is gc.is_tracked(source)
    if isinstance(source, list):
        for ours, theirs in zip(source, clone, strict=True):
            check_clone(ours, theirs)
    elif hasattr(source, "__struct_fields__"):
        for name in source.__struct_fields__:
            name = "_unknown_tags" if name == "unknown_tags" else name
            check_clone(getattr(source, name), getattr(clone, name))
    else:
        assert clone is source


@pytest.mark.parametrize("workload", BY_KEY)
def test_a_clone_of_a_workload_is_what_the_engine_decodes(workload: Workload):
    engines.require_native()
    with engines.running("native"):
        cls, version = type(workload.message()), workload.version
        decoded = cls.decode(workload.body(), version)
        clone = cloner(cls, version)(decoded)
        assert clone == decoded
        check_clone(decoded, clone)
        assert clone.encode(version) == workload.body()


@pytest.mark.parametrize(
    ("name", "version"),
    [("ConsumerGroupMemberMetadataValue", 0), ("FetchResponse", 13), ("ApiVersionsResponse", 3),
     ("MetadataResponse", 1), ("ConsumerProtocolAssignment", 3)],
)  # fmt: skip
def test_any_message_is_cloned(name: str, version: int):
    """Nulls, structs in structs, tags and what a version lacks."""
    schema = released()[name]
    cls = kproto.dialect("kafka").message(name)
    rng = seeds.generator(f"floor:{name}:{version}")
    clone = cloner(cls, version)
    for _ in range(20):
        message = to_instance(cls, random_tree(schema, version, rng, size=30), schema)
        decoded = cls.decode(message.encode(version), version)
        assert clone(decoded) == decoded


def test_another_object_is_not_cloned():
    clone = cloner(HeartbeatRequest, 4)
    with pytest.raises(TypeError, match="not a"):
        clone("a string")


@pytest.mark.parametrize("workload", BY_KEY)
def test_construct_reads_what_we_read(workload: Workload):
    message, body = workload.message(), workload.body()
    plan = registry.plan_of(type(message), workload.version).root
    operations = construct_peer.operations(plan, body)
    assert operations["encode"]() == body
    check_container(operations["decode"](), message)


def check_container(found: Any, expected: Any) -> None:
    if isinstance(expected, list):
        for theirs, ours in zip(found, expected, strict=True):
            check_container(theirs, ours)
    elif hasattr(expected, "__struct_fields__"):
        for name in found:
            if name not in ("_io", "tags"):
                check_container(found[name], getattr(expected, name))
    else:
        assert found == expected


@pytest.mark.slow
@pytest.mark.counts_memory
def test_a_decoded_message_keeps_to_its_marks():
    engines.require_native()
    with engines.running("native"):
        assert bench_start.decoded_kib() <= 380
        tracked, containers = bench_start.tracked_objects()
        assert tracked * 10 <= containers
        assert containers > 4000
