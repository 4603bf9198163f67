"""KIP-236, older draft: the plan znode, the extra one, the switch, and what nobody can read."""

from __future__ import annotations

import json

import pytest

from kproto.znodes import EmbeddedStore, ZnodeTree
from mockbroker.errors import ClusterError
from tests.mockbroker.reassignment.requesting import (
    CANCEL,
    CHILD,
    EXTRA,
    LEGACY,
    REQUESTS,
    child,
    children,
    in_flight,
    legacy,
    moves,
    old_cluster,
    plan,
    plan_text,
    request_text,
    story,
    submit,
    warnings,
)
from tests.mockbroker.reassignment.walks import FOO, joined, now, znode_writes

BROKERS = "1,2,3,4,5,6"

# ---- /admin/reassign_partitions ------------------------------------------------------------------


@pytest.mark.requirement("K236-07")
@pytest.mark.requirement("K236-58")
@pytest.mark.requirement("K236-67")
@pytest.mark.requirement("A-20")
def test_a_plan_becomes_a_legacy_request() -> None:
    cluster = old_cluster("my-topic=4,5,6", "your-topic=1/1/1/1,2,3")
    since = len(cluster.log)
    text = plan_text({("my-topic", 0): [1, 2, 3], ("your-topic", 3): [4, 5, 6]})
    cluster.write_znode(LEGACY, text)
    written, completed, (request, asked), *_ = znode_writes(cluster, since)
    assert written == (LEGACY, text)
    assert completed[0] == LEGACY
    assert request == f"{REQUESTS}/request_0000000000"
    assert asked is not None
    assert json.loads(asked) == {
        "version": 1,
        "assignments": {"my-topic": {"0": [1, 2, 3]}, "your-topic": {"3": [4, 5, 6]}},
        "legacy": True,
    }
    assert child(cluster, ("my-topic", 0)) == {
        "version": 1, "replicas": [1, 2, 3], "legacy": True, "top": 3,
    }  # fmt: skip
    assert children(cluster) == {("my-topic", 0), ("your-topic", 3)}


@pytest.mark.requirement("K236-07")
@pytest.mark.requirement("K236-08")
def test_the_plan_on_record_has_the_original_replicas() -> None:
    cluster = old_cluster("foo1=1,2,3", "foo2=1/5,6,4")
    cluster.write_znode(LEGACY, plan_text({("foo1", 0): [1, 2, 4], ("foo2", 1): [2, 3, 1]}))
    assert cluster.znodes[LEGACY] == (
        '{"version":1,"partitions":['
        '{"topic":"foo1","partition":0,"replicas":[1,2,4],"original_replicas":[1,2,3]},'
        '{"topic":"foo2","partition":1,"replicas":[2,3,1],"original_replicas":[5,6,4]}]}'
    )


@pytest.mark.requirement("K236-07")
def test_original_replicas_that_a_tool_wrote_stay_if_such_brokers_are_there() -> None:
    cluster = old_cluster("foo=1,2,3", "bar=1,2")
    text = plan_text({FOO: [4], ("bar", 0): [5]}, foo=[3, 2, 1], bar=[1, 99])
    cluster.write_znode(LEGACY, text)
    assert plan(cluster) == {FOO: ([4], [3, 2, 1]), ("bar", 0): ([5], [1, 2])}
    (warning,) = warnings(cluster)
    assert warning.startswith(f"{LEGACY}: original_replicas of bar-0: ")
    cluster.write_znode(CANCEL, "")
    assert now(cluster)[0] == [3, 2, 1]


@pytest.mark.requirement("K236-02")
@pytest.mark.requirement("K236-56")
@pytest.mark.requirement("K236-67")
def test_what_is_done_leaves_the_plan_and_the_slowest_stays() -> None:
    cluster = old_cluster("foo=1/1/1", "bar=1")
    cluster.write_znode(LEGACY, plan_text({("foo", index): [4] for index in range(3)}))
    submit(cluster, [4], ("bar", 0))
    for tp in [("foo", 0), ("bar", 0), ("foo", 2)]:
        cluster.join_isr(tp, 4)
    assert plan(cluster) == {("foo", 1): ([4], [1])}
    assert children(cluster) == {("foo", 1)}
    cluster.join_isr(("foo", 1), 4)
    assert cluster.read_znode(LEGACY) is None
    assert children(cluster) == set()


@pytest.mark.requirement("K236-06")
@pytest.mark.requirement("K236-59")
def test_a_plan_may_get_more_and_change_while_it_is_under_way() -> None:
    cluster = old_cluster("foo=1,2", "bar=1,2")
    legacy(cluster, [2, 3])
    since = len(cluster.log)
    cluster.write_znode(LEGACY, plan_text({FOO: [2, 4], ("bar", 0): [5, 6]}))
    assert now(cluster) == ([1, 2, 4], [1, 2], [2, 4])
    assert {replicas for replicas, _ in moves(cluster, since)} == {(3,)}
    assert plan(cluster) == {FOO: ([2, 4], [1, 2]), ("bar", 0): ([5, 6], [1, 2])}
    since = len(cluster.log)
    cluster.write_znode(LEGACY, json.dumps(json.loads(cluster.znodes[LEGACY])))
    # The same in other words: put right, and nothing else.
    assert len(story(cluster, since)) == 2


@pytest.mark.requirement("K236-58")
def test_what_is_there_already_leaves_the_plan_at_once() -> None:
    cluster = old_cluster("foo=1,2,3", "bar=1,2,3")
    cluster.write_znode(LEGACY, plan_text({FOO: [1, 2, 3], ("bar", 0): [3, 2, 1]}))
    assert cluster.read_znode(LEGACY) is None
    assert cluster.partition("bar", 0).replicas == (3, 2, 1)
    assert warnings(cluster) == []


@pytest.mark.requirement("K236-03")
def test_a_plan_of_more_than_zookeeper_takes_is_not_written() -> None:
    cluster = old_cluster()
    text = plan_text({FOO: [4]})
    with pytest.raises(ClusterError, match=r"takes 1048575 \(jute\.maxbuffer\)"):
        cluster.write_znode(LEGACY, text + " " * (1024 * 1024 + 1 - len(text)))
    assert (cluster.read_znode(LEGACY), in_flight(cluster)) == (None, set())
    cluster.write_znode(LEGACY, text + " " * (1_048_000 - len(text)))
    assert in_flight(cluster) == {FOO}


@pytest.mark.requirement("K236-03")
def test_a_plan_that_its_original_replicas_make_too_large_is_removed() -> None:
    store = EmbeddedStore(ZnodeTree(max_request_bytes=1400), lambda: 0)
    cluster = old_cluster(("foo", [[1, 2, 3, 4, 5, 6]] * 20), znodes=store)
    cluster.write_znode(LEGACY, plan_text({("foo", index): [6] for index in range(20)}))
    (warning,) = warnings(cluster)
    assert warning.endswith(f"(jute.maxbuffer); {LEGACY} is removed")
    assert (cluster.read_znode(LEGACY), in_flight(cluster)) == (None, set())


# ---- /admin/reassign_partitions_extra ------------------------------------------------------------


@pytest.mark.requirement("K236-06")
@pytest.mark.requirement("K236-52")
@pytest.mark.requirement("A-21")
def test_an_extra_plan_joins_the_plan_at_once() -> None:
    cluster = old_cluster("foo=1,2", "bar=1,2")
    legacy(cluster, [3, 4])
    cluster.write_znode(EXTRA, plan_text({("bar", 0): [5, 6]}))
    assert cluster.read_znode(EXTRA) is None
    assert plan(cluster) == {FOO: ([3, 4], [1, 2]), ("bar", 0): ([5, 6], [1, 2])}
    assert child(cluster, ("bar", 0)) == {
        "version": 1, "replicas": [5, 6], "legacy": True, "top": 2,
    }  # fmt: skip


@pytest.mark.requirement("K236-53")
def test_what_is_pending_is_rolled_back_before_the_extra_plan_is_submitted() -> None:
    cluster = old_cluster("foo=1,2,3", "bar=1")
    cluster.write_znode(LEGACY, plan_text({FOO: [1, 2, 4]}))
    since = len(cluster.log)
    cluster.write_znode(EXTRA, plan_text({FOO: [1, 2, 5], ("bar", 0): [6]}))
    lines = story(cluster, since)
    first = [
        lines.index("StopReplica to 4 delete=True"),
        lines.index("reassignments/foo/0 removed"),
        lines.index("reassign_partitions removed"),
        lines.index(f"reassign_partitions {entries('foo', '[1,2,5]', '[1,2,3]')}"),
        lines.index(f"reassign_partitions_extra {entries('bar', '[6]')}"),
        lines.index("reassign_partitions_extra removed"),
        lines.index('reassignments/foo/0 {"version":1,"replicas":[1,2,5],"legacy":true,"top":3}'),
    ]
    assert first == sorted(first)
    assert plan(cluster) == {FOO: ([1, 2, 5], [1, 2, 3]), ("bar", 0): ([6], [1])}
    assert now(cluster) == ([1, 2, 3, 5], [1, 2, 3], [1, 2, 5])


def entries(topic: str, replicas: str, original: str | None = None) -> str:
    last = "" if original is None else f',"original_replicas":{original}'
    entry = f'{{"topic":"{topic}","partition":0,"replicas":{replicas}{last}}}'
    return f'{{"version":1,"partitions":[{entry}]}}'


@pytest.mark.requirement("K236-53")
@pytest.mark.requirement("K236-59")
def test_what_an_extra_plan_may_not_move_is_dropped_and_the_rest_is_moved() -> None:
    cluster = old_cluster("foo=1,2", "bar=1", "baz=1")
    submit(cluster, [3])
    text = plan_text({("no", 0): [1], FOO: [4], ("bar", 0): [9], ("baz", 0): [5]})
    cluster.write_znode(EXTRA, text)
    assert cluster.read_znode(EXTRA) is None
    assert plan(cluster) == {("baz", 0): ([5], [1])}
    assert now(cluster)[2] == [3]
    assert [text.split(" is ignored")[0] for text in warnings(cluster)] == [
        f"{EXTRA}: {tp}" for tp in ("no-0", "foo-0", "bar-0")
    ]


# ---- /admin/reassign_cancel ----------------------------------------------------------------------


@pytest.mark.requirement("K236-01")
@pytest.mark.requirement("K236-04")
@pytest.mark.requirement("K236-10")
@pytest.mark.requirement("K236-50")
@pytest.mark.requirement("A-17")
def test_the_switch_rolls_back_what_is_pending_in_seven_steps_and_stays() -> None:
    cluster = old_cluster("foo=1,2,3")
    legacy(cluster, [4, 5])
    joined(cluster, 4)
    cluster.leave_isr(FOO, 3)
    since = len(cluster.log)
    cluster.write_znode(CANCEL, "")
    assert story(cluster, since) == [
        "reassign_cancel ",
        "memory R=1,2,3 I=1,2,4 leader=1 epoch=1 T=4,5",
        "foo/partitions/0/state I=1,2,4 leader=1 epoch=2",
        "memory R=1,2,3 I=1,2,4 leader=1 epoch=2 T=4,5",
        "LeaderAndIsr to 1,2,3 R=1,2,3 I=1,2,4 leader=1 epoch=2",
        "4,5 -> OfflineReplica",
        "foo/partitions/0/state I=1,2 leader=1 epoch=3",
        "memory R=1,2,3 I=1,2 leader=1 epoch=3 T=4,5",
        "LeaderAndIsr to 1 R=1,2,3 I=1,2 leader=1 epoch=3",
        "StopReplica to 4,5 delete=False",
        "4,5 -> NonExistentReplica",
        "StopReplica to 4,5 delete=True",
        "foo 1,2,3",
        "reassignments/foo/0 removed",
        "reassign_partitions removed",
        "memory R=1,2,3 I=1,2 leader=1 epoch=3",
        f"UpdateMetadata to {BROKERS} R=1,2,3 I=1,2 leader=1 epoch=3",
    ]
    assert CANCEL in cluster.znodes


@pytest.mark.requirement("K236-01")
@pytest.mark.requirement("K236-04")
def test_a_new_replica_that_leads_is_followed_by_an_original_one() -> None:
    cluster = old_cluster("foo=2,3")
    submit(cluster, [4, 5])
    joined(cluster, 4)
    cluster.leave_isr(FOO, 3)
    cluster.stop_broker(2)
    cluster.start_broker(2)
    joined(cluster, 3, 2)
    assert cluster.partition(*FOO).leader == 4
    since = len(cluster.log)
    cluster.write_znode(CANCEL, "")
    assert now(cluster) == ([2, 3], [3, 2], None)
    assert cluster.partition(*FOO).leader == 2
    (first, *_) = [line for line in story(cluster, since) if line.startswith("LeaderAndIsr")]
    assert first.startswith("LeaderAndIsr to 2,3 R=2,3 I=4,3,2 leader=2")


@pytest.mark.requirement("K236-04")
@pytest.mark.requirement("K236-10")
def test_all_that_is_pending_is_rolled_back_as_the_plan_says() -> None:
    cluster = old_cluster("foo=1,2/1,2", "bar=1,2")
    cluster.write_znode(LEGACY, plan_text({FOO: [3, 4], ("foo", 1): [4]}))
    submit(cluster, [5], ("bar", 0))
    cluster.join_isr(("foo", 1), 4)
    # Done is done; what a tool writes into the plan counts when it is read again.
    cluster.write_znode(LEGACY, plan_text({FOO: [3, 4]}, foo=[2, 1]))
    cluster.write_znode(CANCEL, "")
    assert in_flight(cluster) == children(cluster) == set()
    assert cluster.read_znode(LEGACY) is None
    found = [cluster.partition(*tp).replicas for tp in [FOO, ("foo", 1), ("bar", 0)]]
    assert found == [(2, 1), (4,), (1, 2)]


@pytest.mark.requirement("K236-05")
@pytest.mark.requirement("K236-51")
def test_nothing_starts_while_the_switch_is_there() -> None:
    cluster = old_cluster("foo=1,2", "bar=1,2")
    cluster.write_znode(CANCEL, "whatever")
    before = [dict(cluster.topics), set(children(cluster))]
    since = len(cluster.log)
    submit(cluster, [3])
    legacy(cluster, [3])
    cluster.write_znode(EXTRA, plan_text({("bar", 0): [3]}))
    assert [dict(cluster.topics), set(children(cluster))] == before
    assert cluster.znode_children(REQUESTS) == []
    assert [cluster.read_znode(path) for path in (LEGACY, EXTRA)] == [None, None]
    found = warnings(cluster, since)
    assert len(found) == 3
    assert all(text.endswith("disabled while /admin/reassign_cancel exists.") for text in found)
    cluster.write_znode(CANCEL, None)
    assert [dict(cluster.topics), set(children(cluster))] == before
    submit(cluster, [3])
    assert in_flight(cluster) == {FOO}


@pytest.mark.requirement("K236-51")
@pytest.mark.requirement("K236-55")
@pytest.mark.requirement("K236-60")
def test_what_cannot_be_rolled_back_waits_until_the_switch_is_gone() -> None:
    cluster = old_cluster("foo=1,2,3")
    submit(cluster, [4])
    cluster.failover(2)
    since = len(cluster.log)
    cluster.write_znode(CANCEL, "")
    (warning,) = warnings(cluster, since)
    assert warning.startswith(f"{CANCEL}: The original replicas of foo-0 are not known")
    joined(cluster, 4)
    assert now(cluster) == ([1, 2, 3, 4], [1, 2, 3, 4], [4])
    cluster.failover(3)
    assert now(cluster) == ([1, 2, 3, 4], [1, 2, 3, 4], [4])
    cluster.write_znode(CANCEL, None)
    assert now(cluster) == ([4], [4], None)


@pytest.mark.requirement("K236-51")
def test_a_controller_that_takes_over_leaves_alone_what_is_paused() -> None:
    cluster = old_cluster("foo=1,2,3")
    submit(cluster, [4])
    cluster.failover(2)
    cluster.write_znode(CANCEL, "")
    epoch = cluster.partition(*FOO).leader_epoch
    cluster.failover(3)
    assert cluster.partition(*FOO).leader_epoch == epoch
    assert now(cluster) == ([1, 2, 3, 4], [1, 2, 3], [4])
    since = len(cluster.log)
    cluster.write_znode(CANCEL, None)
    assert f"LeaderAndIsr to 1,2,3,4 R=1,2,3,4 I=1,2,3 leader=1 epoch={epoch + 1}" in story(
        cluster, since
    )


# ---- what nobody can read, or do -----------------------------------------------------------------

UNREADABLE = [
    "",
    "{",
    "[" * 100_000,
    "[]",
    "null",
    "\ud800",
    '{"version":1}',
]


@pytest.mark.requirement("K236-54")
@pytest.mark.requirement("A-20")
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
    path = cluster.append_znode(f"{REQUESTS}/request_", text)
    (warning,) = warnings(cluster)
    assert warning.startswith(f"{path}: ")
    assert warning.endswith("; removed")
    assert "\n" not in warning
    assert (cluster.znode_children(REQUESTS), in_flight(cluster)) == ([], set())


@pytest.mark.requirement("K236-54")
def test_what_a_request_asks_in_vain_is_logged_and_the_rest_is_done() -> None:
    cluster = old_cluster("foo=1", "bar=1")
    asked = {FOO: [4], ("foo", 9): [4], ("no", 0): [4], ("bar", 0): [4, 4]}
    path = cluster.append_znode(f"{REQUESTS}/request_", request_text(asked))
    assert [each.removeprefix(f"{path}: ").split(":")[0] for each in warnings(cluster)] == [
        "foo-9 is ignored", "no-0 is ignored", "bar-0 is ignored",
    ]  # fmt: skip
    submit(cluster, [9], ("bar", 0))
    submit(cluster, [], ("bar", 0))
    assert "no such broker is registered" in warnings(cluster)[-2]
    assert "empty replica list" in warnings(cluster)[-1]
    assert in_flight(cluster) == children(cluster) == {FOO}


@pytest.mark.requirement("K236-52")
@pytest.mark.requirement("K236-58")
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
    cluster.write_znode(path, text)
    (warning,) = warnings(cluster)
    assert warning.startswith(f"{path}: ")
    assert warning.endswith("; removed")
    assert (cluster.read_znode(path), in_flight(cluster)) == (None, set())


@pytest.mark.requirement("K236-58")
def test_a_plan_that_cannot_be_done_leaves_nothing_behind() -> None:
    cluster = old_cluster()
    plans: list[dict[tuple[str, int], list[int]]] = [
        {("no", 0): [1]}, {("foo", 3): [1]}, {FOO: []}, {FOO: [1, 1]}, {FOO: [9]},
    ]  # fmt: skip
    for asked in plans:
        since = len(cluster.log)
        cluster.write_znode(LEGACY, plan_text(asked))
        assert cluster.read_znode(LEGACY) is None
        (warning,) = warnings(cluster, since)
        assert " is ignored: " in warning
    cluster.write_znode(LEGACY, '{"version":1,"partitions":[]}')
    assert cluster.read_znode(LEGACY) is None
    assert in_flight(cluster) == set()


@pytest.mark.requirement("K236-58")
def test_a_partition_named_twice_goes_where_it_is_told_last() -> None:
    cluster = old_cluster()
    entry = '{"topic":"foo","partition":0,"replicas":[%d]}'
    cluster.write_znode(LEGACY, f'{{"version":1,"partitions":[{entry % 4},{entry % 5}]}}')
    assert plan(cluster) == {FOO: ([5], [1, 2, 3])}
    assert now(cluster)[2] == [5]


@pytest.mark.requirement("K236-56")
@pytest.mark.requirement("A-52")
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
    cluster.write_znode(CHILD, text)
    assert in_flight(cluster) == {FOO}
    cluster.failover(2)
    assert (in_flight(cluster), children(cluster)) == (set(), set())
    (warning,) = warnings(cluster)
    assert warning.startswith(f"{CHILD}: ")
    assert warning.endswith("; taken as no reassignment, and removed")


@pytest.mark.requirement("K236-56")
def test_znodes_of_what_does_not_exist_are_swept_away() -> None:
    cluster = old_cluster()
    text = '{"version":1,"replicas":[4],"legacy":false,"top":3}'
    for where in ("no/0", "foo/7", "foo/x"):
        cluster.write_znode(f"/admin/reassignments/{where}", text)
    submit(cluster, [4])
    cluster.failover(2)
    assert children(cluster) == in_flight(cluster) == {FOO}
    assert cluster.znode_children("/admin/reassignments") == ["foo"]
    assert len(warnings(cluster)) == 3


@pytest.mark.requirement("K236-54")
def test_a_request_that_has_children_stays_and_the_log_says_so() -> None:
    cluster = old_cluster()
    cluster.write_znode(f"{REQUESTS}/request_x/child", "")
    submit(cluster, [4])
    assert in_flight(cluster) == {FOO}
    assert cluster.znode_children(REQUESTS) == ["request_x"]
    assert any(text.endswith("it stays") for text in warnings(cluster))
