"""KIP-236, older draft: the plan znode, the extra one, the switch, and what nobody can read."""

import pytest

from kproto.znodes import EmbeddedStore, ZnodeTree
from mockbroker.errors import ClusterError
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulation.reassignment.requesting import (
    CHILD,
    EXTRA,
    LEGACY,
    REQUESTS,
    children,
    in_flight,
    old_cluster,
    plan_text,
    request_text,
    submit,
)
from tests.mockbroker.simulation.reassignment.walks import FOO, warnings

BROKERS = "1,2,3,4,5,6"

# ---- /admin/reassign_partitions ------------------------------------------------------------------


@pytest.mark.requirement("K236-07", "K236-08")
def test_the_plan_on_record_has_the_original_replicas() -> None:
    cluster = old_cluster("foo1=1,2,3", "foo2=1/5,6,4")
    Operations(cluster).write_znode(
        LEGACY, plan_text({("foo1", 0): [1, 2, 4], ("foo2", 1): [2, 3, 1]})
    )
    assert cluster.state.znodes[LEGACY] == (
        '{"version":1,"partitions":['
        '{"topic":"foo1","partition":0,"replicas":[1,2,4],"original_replicas":[1,2,3]},'
        '{"topic":"foo2","partition":1,"replicas":[2,3,1],"original_replicas":[5,6,4]}]}'
    )


@pytest.mark.requirement("K236-03")
def test_a_plan_of_more_than_zookeeper_takes_is_not_written() -> None:
    cluster = old_cluster()
    text = plan_text({FOO: [4]})
    with pytest.raises(ClusterError, match=r"accepts 1048575 \(jute\.maxbuffer\)"):
        Operations(cluster).write_znode(LEGACY, text + " " * (1024 * 1024 + 1 - len(text)))
    assert (cluster.znodes.read(LEGACY), in_flight(cluster)) == (None, set())
    Operations(cluster).write_znode(LEGACY, text + " " * (1_048_000 - len(text)))
    assert in_flight(cluster) == {FOO}


@pytest.mark.requirement("K236-03")
def test_a_plan_that_its_original_replicas_make_too_large_is_removed() -> None:
    store = EmbeddedStore(ZnodeTree(max_request_bytes=1400), lambda: 0)
    cluster = old_cluster(("foo", [[1, 2, 3, 4, 5, 6]] * 20), znodes=store)
    Operations(cluster).write_znode(LEGACY, plan_text({("foo", index): [6] for index in range(20)}))
    (warning,) = warnings(cluster)
    assert warning.endswith(f"(jute.maxbuffer); {LEGACY} is removed")
    assert (cluster.znodes.read(LEGACY), in_flight(cluster)) == (None, set())


# ---- /admin/reassign_partitions_extra ------------------------------------------------------------


# ---- /admin/reassign_cancel ----------------------------------------------------------------------


# ---- what nobody can read, or do -----------------------------------------------------------------

UNREADABLE = ["", "{", "[" * 100_000, "[]", "null", "\ud800", '{"version":1}']


@pytest.mark.requirement("K236-54", "A-20")
@pytest.mark.parametrize(
    "text",
    [
        *UNREADABLE,
        '{"version":1 "assignments":{"foo":{"0":[4]}} "legacy":true }',
        request_text({FOO: [4]}, other=1),
        request_text({FOO: [4]}, legacy="yes"),
        request_text({FOO: [4, -1]}),
        request_text({("foo", -1): [4]}),
        '{"version":1,"assignments":{"foo":{"x":[4]}}}',
        '{"version":1,"assignments":{"foo":{"0":["4"]}}}',
        '{"version":1,"assignments":{"foo":{"0":null}}}',
        '{"version":1,"assignments":{"foo":[4]}}',
    ],
)
def test_a_request_that_cannot_be_read_is_logged_and_removed(text: str) -> None:
    cluster = old_cluster()
    path = Operations(cluster).append_znode(f"{REQUESTS}/request_", text)
    (warning,) = warnings(cluster)
    assert warning.startswith(f"{path}: ")
    assert warning.endswith("; removed")
    assert "\n" not in warning
    assert (cluster.znodes.children(REQUESTS), in_flight(cluster)) == ([], set())


@pytest.mark.requirement("K236-52", "K236-58")
@pytest.mark.parametrize("path", [LEGACY, EXTRA])
@pytest.mark.parametrize(
    "text",
    [
        *UNREADABLE,
        plan_text({FOO: [4, -1]}),
        plan_text({("foo", -1): [4]}),
        '{"version":1,"partitions":[{"topic":"foo","partition":0}]}',
        '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[4],"more":1}]}',
    ],
)
def test_a_plan_that_cannot_be_read_is_logged_and_removed(path: str, text: str) -> None:
    cluster = old_cluster()
    Operations(cluster).write_znode(path, text)
    (warning,) = warnings(cluster)
    assert warning.startswith(f"{path}: ")
    assert warning.endswith("; removed")
    assert (cluster.znodes.read(path), in_flight(cluster)) == (None, set())


@pytest.mark.requirement("K236-56", "A-52")
@pytest.mark.parametrize(
    "text",
    [
        *UNREADABLE,
        '{"version":1,"replicas":[],"legacy":false,"top":3}',
        '{"version":1,"replicas":[4,4],"legacy":false,"top":3}',
        '{"version":1,"replicas":[99],"legacy":false,"top":3}',
        '{"version":1,"replicas":[-4],"legacy":false,"top":3}',
        '{"version":1,"replicas":[4],"legacy":false,"top":0}',
        '{"version":1,"replicas":[4],"legacy":false}',
        '{"version":1,"replicas":[4],"legacy":0,"top":3}',
        '{"version":1,"replicas":[4],"legacy":false,"top":3,"more":1}',
    ],
)
def test_a_reassignment_that_a_new_controller_cannot_read_is_none(text: str) -> None:
    cluster = old_cluster()
    submit(cluster, [4])
    Operations(cluster).write_znode(CHILD, text)
    assert in_flight(cluster) == {FOO}
    Operations(cluster).failover(2)
    assert (in_flight(cluster), children(cluster)) == (set(), set())
    (warning,) = warnings(cluster)
    assert warning.startswith(f"{CHILD}: ")
    assert warning.endswith("; taken as no reassignment, and removed")
