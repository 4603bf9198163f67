"""KIP-236, newer revision: more reassignments while some are in flight, through the queue znode."""

import json

import pytest

from kproto.znodes import EmbeddedStore, NodeExistsError, ZnodeTree
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import StopReplicaSent, ZnodeWritten
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.reassignment.cancelling import (
    NEW,
    PLAN,
    QUEUE,
    cluster,
    entry,
    on_record,
    plan,
    queue,
    submit,
)
from tests.mockbroker.simulation.reassignment.walks import FOO, changes, now, warnings

ALL = (1, 2, 3, 4, 5, 6)


@pytest.mark.requirement("K236-06", "K236-37", "A-21")
def test_the_pages_queue_beside_what_is_in_flight() -> None:
    c = simulated_cluster(
        10, topics=["foo1=1,2,3", "foo2=5,6,8/5,6,8", "bar=1,2"], reassignment=NEW
    )
    submit(c, entry([3, 4], tp=("bar", 0)))
    since = len(c.log)
    Operations(c).write_znode(
        QUEUE,
        '{"version":1,\n "partitions":[{"topic": "foo1",\n "partition": 0,\n "replicas": [1,2,5]\n'
        ' },\n {"topic": "foo2",\n "partition": 1,\n "replicas": [7,9,10]\n }]\n}\n',
    )
    assert on_record(c) == [
        entry([3, 4], [1, 2], ("bar", 0)),
        entry([1, 2, 5], [1, 2, 3], ("foo1", 0)),
        entry([7, 9, 10], [5, 6, 8], ("foo2", 1)),
    ]
    # One by one, and the znode goes with the last.
    left = [
        None if write.after is None else len(json.loads(write.after)["partitions"])
        for write in changes(c, ZnodeWritten, since)
        if write.path == QUEUE
    ]
    assert left == [2, 1, None]
    assert changes(c, StopReplicaSent) == []


@pytest.mark.requirement("K236-38")
def test_a_queue_that_is_there_blocks_the_next_submission() -> None:
    """The controller of this cluster is slow: it looks when ``react`` is called."""
    tree = ZnodeTree()
    c = simulated_cluster(
        4, topics=["foo=1,2"], reassignment=NEW, znodes=EmbeddedStore(tree, lambda: 0)
    )
    tool = EmbeddedStore(tree, lambda: 0)
    tool.create(QUEUE, plan(entry([1, 3])).encode())
    with pytest.raises(NodeExistsError):
        tool.create(QUEUE, plan(entry([1, 4])).encode())
    c.turns.react()
    assert now(c) == ([1, 3, 2], [1, 2], [1, 3])
    tool.create(QUEUE, plan(entry([1, 4])).encode())
    c.turns.react()
    assert now(c) == ([1, 4, 2], [1, 2], [1, 4])
    assert on_record(c) == [entry([1, 4], [1, 2])]


@pytest.mark.requirement("K236-36", "K236-06")
def test_one_too_many_for_the_plan_is_left_out_of_it() -> None:
    """The plan of all together would be over the limit of a request; the queue is not."""
    limit = 420
    tree = ZnodeTree(max_request_bytes=limit)
    topics = [(f"t{i}", [[1, 2]]) for i in range(6)]
    c = simulated_cluster(4, topics=topics, reassignment=NEW, znodes=EmbeddedStore(tree, lambda: 0))
    submit(c, *(entry([3], tp=(f"t{i}", 0)) for i in range(4)))
    queue(c, entry([4], tp=("t4", 0)), entry([4], tp=("t5", 0)))
    pending = [e["topic"] for e in on_record(c) or []]
    left_out = [text for text in warnings(c) if text.startswith(f"{QUEUE}: ")]
    assert len(pending) + len(left_out) == 6
    assert left_out
    assert all(text.endswith("; it is left out") for text in left_out)
    assert c.znodes.read(QUEUE) is None
    for name, topic in c.topics.items():
        assert topic.partitions[0].reassigning is (name in pending)


MALFORMED = [
    "",
    "{",
    "[" * 100_000,
    "[]",
    "\ud800",
    '{"version":1}',
    '{"version":1 "partitions":[]}',
    '{"version":1,"partitions":null}',
    '{"version":1,"partitions":[{"topic":"foo","partition":0}]}',
    '{"version":1,"partitions":[{"topic":"foo","partition":-1,"replicas":[1]}]}',
    '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[-1]}]}',
    '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":["4"]}]}',
    '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[4,99999999999]}]}',
    '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[4],"more":1}]}',
]


@pytest.mark.requirement("K236-07", "K236-36", "A-20")
@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("path", [PLAN, QUEUE])
@pytest.mark.parametrize("text", MALFORMED)
def test_a_plan_that_cannot_be_read_is_removed_and_blocks_nothing(path, text, pending):
    c = cluster("foo=1,2,3/1,2,3")
    if pending:
        submit(c, entry([6], tp=("foo", 1)))
        if path == PLAN:
            Operations(c).write_znode(PLAN, None)
    Operations(c).write_znode(path, text)
    (warning,) = warnings(c)
    assert warning.startswith(f"{path}: ")
    assert warning.endswith("; removed")
    assert "\n" not in warning
    assert len(warning) < 300
    assert on_record(c) == ([entry([6], [1, 2, 3], ("foo", 1))] if pending else None)
    assert c.znodes.read(QUEUE) is None
    assert now(c) == ([1, 2, 3], [1, 2, 3], None)
    queue(c, entry([4]))
    assert now(c)[2] == [4]


@pytest.mark.requirement("K236-07", "K236-36")
@pytest.mark.parametrize("path", [PLAN, QUEUE])
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (entry([]), "The manual partition assignment includes an empty replica list."),
        (entry([4, 4]), "The manual partition assignment includes the broker 4 more than once."),
        (
            entry([1, 99]),
            "The manual partition assignment includes broker 99, but no such broker is registered.",
        ),
        (entry([4], []), "The manual partition assignment includes an empty replica list."),
        (
            entry([4], [98]),
            "The manual partition assignment includes broker 98, but no such broker is registered.",
        ),
        (entry([4], tp=("no", 0)), "Unable to find a topic named no."),
        (entry([4], tp=("foo", 9)), "Unable to find partition foo:9."),
        (entry([4], tp=("../x", 0)), "Unable to find a topic named ../x."),
    ],
)
def test_what_makes_no_sense_is_left_out_and_stops_no_other(path, bad, reason):
    c = cluster("foo=1,2,3/1,2,3")
    Operations(c).write_znode(path, plan(bad, entry([4], tp=("foo", 1))))
    name = f"{bad['topic']}-{bad['partition']}"
    assert warnings(c) == [f"{path}: {name}: {reason} It is left out."]
    assert on_record(c) == [entry([4], [1, 2, 3], ("foo", 1))]
    assert now(c) == ([1, 2, 3], [1, 2, 3], None)
    assert now(c, ("foo", 1))[2] == [4]
    Operations(c).join_isr(("foo", 1), 4)
    assert c.znodes.children("/admin") == ["delete_topics"]


@pytest.mark.requirement("K236-07")
@pytest.mark.parametrize("path", [PLAN, QUEUE])
def test_a_plan_of_nothing_goes(path: str) -> None:
    c = cluster()
    Operations(c).write_znode(path, plan())
    assert c.znodes.read(path) is None
    Operations(c).write_znode(path, plan(entry([9])))
    assert c.znodes.read(path) is None
    assert c.topics.partition(*FOO).reassigning is False


@pytest.mark.requirement("K236-03", "K236-07")
def test_a_plan_that_outgrows_the_limit_with_its_originals_is_left_out() -> None:
    tree = ZnodeTree(max_request_bytes=400)
    topics = [(f"t{i}", [[1, 2]]) for i in range(5)]
    c = simulated_cluster(4, topics=topics, reassignment=NEW, znodes=EmbeddedStore(tree, lambda: 0))
    submit(c, entry([3], tp=("t0", 0)))
    Operations(c).write_znode(PLAN, None)
    submit(c, *(entry([3], tp=(f"t{i}", 0)) for i in range(1, 5)))
    (warning,) = warnings(c)
    assert warning.startswith(f"{PLAN}: ")
    assert warning.endswith("; the submission is left out")
    assert on_record(c) == [entry([3], [1, 2], ("t0", 0))]
    assert [t.partitions[0].reassigning for t in c.topics.values()] == [True] + [False] * 4
