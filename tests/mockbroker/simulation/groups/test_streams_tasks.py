"""Tasks of streams groups: how many there are, who gets them, and how members get there."""

import random
from typing import Any

import pytest
from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.groups.modern.modern_group import MemberState
from mockbroker.simulation.groups.streams.streams_group import Member, Tasks
from mockbroker.simulation.groups.streams.task_assignor import Worker, sticky
from mockbroker.simulation.groups.streams.task_reconciliation import (
    ON_DIFFERENCE,
    ON_RECONCILE,
    Holders,
    Reconciliation,
    reconcile,
)
from mockbroker.simulation.groups.streams.topology import (
    BrokenTopologyError,
    CopartitionGroup,
    InternalTopic,
    InvalidTopologyError,
    Subtopology,
    Topology,
    configure,
)
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import rows_of_release
from mockbroker.simulation.state.results import NewTopic
from tests.mockbroker.simulation.groups.streams import COUNTING, PLAIN, Streams, tasks

OLD, NEW = (4, 3), (4, 4)

# ---- topologies ----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-STREAMS-03")
def test_internal_topics_have_the_partitions_of_their_sources() -> None:
    found = configure(COUNTING, {"foo": 4})
    assert found.tasks == {"0": 4, "1": 4}
    assert found.missing == (NewTopic("by-key", 4), NewTopic("counts", 4))
    assert found.problem is not None
    assert found.problem.detail == "Internal topics are missing: by-key, counts"
    ready = configure(COUNTING, {"foo": 4, "by-key": 4, "counts": 4})
    assert (ready.is_ready, ready.missing, ready.stateful) == (True, (), frozenset(["1"]))


@pytest.mark.requirement("DP-STREAMS-03")
def test_repartition_topics_fill_one_another() -> None:
    second = Subtopology("1", repartitions=(InternalTopic("a"),), sinks=("b",))
    third = Subtopology("0", repartitions=(InternalTopic("b"),))
    first = Subtopology("2", ("foo", "bar"), sinks=("a",))
    found = configure(Topology(0, (third, second, first)), {"foo": 2, "bar": 5})
    assert found.tasks == {"0": 5, "1": 5, "2": 5}


@pytest.mark.requirement("DP-STREAMS-03")
def test_copartitioned_topics_are_equal() -> None:
    joined = Subtopology(
        "1",
        ("bar",),
        repartitions=(InternalTopic("a"), InternalTopic("b", replication_factor=2)),
        copartition_groups=(CopartitionGroup((0,), (), (0,)), CopartitionGroup((), (), (1,))),
    )
    source = Subtopology("0", ("foo",), sinks=("a", "b"))
    found = configure(Topology(0, (source, joined)), {"foo": 4, "bar": 3})
    assert found.missing == (NewTopic("a", 3), NewTopic("b", 4, 2))
    assert found.tasks == {"0": 4, "1": 4}
    fixed = replace(
        joined,
        source_topics=(),
        repartitions=(InternalTopic("a", 6), InternalTopic("b")),
        copartition_groups=(CopartitionGroup((), (), (0, 1)),),
    )
    found = configure(Topology(0, (source, fixed)), {"foo": 4})
    assert found.missing == (NewTopic("a", 6), NewTopic("b", 6))


@pytest.mark.requirement("DP-STREAMS-02", "DP-STREAMS-03")
@pytest.mark.parametrize(
    ("subtopology", "counts", "status", "detail"),
    [
        (
            Subtopology("0", ("e", "d", "c", "b", "a")),
            {"e": 1},
            1,
            "Source topics a, b, c and 1 additional topics are missing.",
        ),
        (
            Subtopology("0", ("a", "b"), copartition_groups=(CopartitionGroup((0, 1)),)),
            {"a": 1, "b": 2},
            2,
            "Following topics do not have the same number of partitions: [{a=1, b=2}]",
        ),
        (
            Subtopology(
                "0",
                ("a",),
                repartitions=(InternalTopic("r", 3),),
                copartition_groups=(CopartitionGroup((0,), (), (0,)),),
            ),
            {"a": 2},
            2,
            "Number of partitions [3] of repartition topic [r] doesn't match number of partitions "
            "[2] of the source topic.",
        ),
        (
            Subtopology("0", ("a",), changelogs=(InternalTopic("log"),)),
            {"a": 2, "log": 1},
            2,
            "Existing topic log has different number of partitions: expected 2, found 1",
        ),
    ],
)
def test_topologies_that_lack_topics(subtopology, counts, status, detail):
    found = configure(Topology(0, (subtopology,)), counts)
    assert found.problem is not None
    assert (found.problem.status, found.problem.detail) == (status, detail)
    assert (found.tasks, found.missing, found.subtopologies) == ({}, (), None)


@pytest.mark.requirement("DP-STREAMS-11")
@pytest.mark.parametrize(
    ("subtopology", "text"),
    [
        (
            Subtopology("0", repartitions=(InternalTopic("r"),), sinks=("r",)),
            "Failed to compute number of partitions for all repartition topics. There may be loops "
            "in the topology that cannot be resolved.",
        ),
        (
            Subtopology("0", ("foo",), repartitions=(InternalTopic("r"),)),
            "Failed to compute number of partitions for all repartition topics, because a "
            "repartition source topic is never used as a sink topic.",
        ),
        (Subtopology("0"), "No source topics found for subtopology 0"),
    ],
)
def test_topologies_that_cannot_work(subtopology: Subtopology, text: str) -> None:
    topology = Topology(0, (subtopology,))
    with pytest.raises(InvalidTopologyError) as raised:
        configure(topology, {"foo": 1})
    assert str(raised.value) == text
    at = Streams(topology=topology)
    result = at.join()
    assert (result.error_code, result.error_message) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
    assert at.state == "none"


@pytest.mark.requirement("DP-STREAMS-11")
@pytest.mark.parametrize("index", [-1, 1])
def test_a_topology_that_cannot_be_read(index: int) -> None:
    broken = Subtopology("0", ("foo",), copartition_groups=(CopartitionGroup((index,)),))
    with pytest.raises(BrokenTopologyError):
        configure(Topology(0, (broken,)), {"foo": 1})
    result = Streams(topology=Topology(0, (broken,))).join()
    assert (result.error_code, result.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)


def _with(**fields: Any) -> Topology:
    return Topology(0, (Subtopology("0", ("foo",), **fields),))


def _named_twice(name: str) -> tuple[InternalTopic, InternalTopic]:
    return InternalTopic(name), InternalTopic(name)


@pytest.mark.requirement("DP-STREAMS-11")
@pytest.mark.parametrize("release", [(4, 2), (4, 4)])
@pytest.mark.parametrize(
    "fields",
    [
        {"tags": (("rack", "1"), ("rack", "2"))},
        {"topology": Topology(-1, (Subtopology("0", ("foo",)),))},
        {"topology": Topology(0, (Subtopology("0", ("foo",)), Subtopology("0", ("foo",))))},
        {"topology": _with(changelogs=_named_twice("log"))},
        {"topology": _with(sinks=("by-key",), repartitions=_named_twice("by-key"))},
        {"topology": _with(changelogs=(InternalTopic("log", configs=(("a", "1"), ("a", "1"))),))},
    ],
    ids=["tag", "epoch", "subtopology", "changelog", "repartition topic", "config"],
)
def test_what_comes_twice_cannot_be_read(release: tuple[int, int], fields: dict[str, Any]) -> None:
    at = Streams(release)
    result = at.join(**fields)
    assert (result.error_code, result.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert at.groups.groups == {}
    assert at.join(tags=(("rack", "1"), ("zone", "1"))).error_code == 0
    changelogs = (InternalTopic("one", configs=(("a", "1"),)), InternalTopic("two"))
    assert Streams(release).join(topology=_with(changelogs=changelogs)).error_code == 0


@pytest.mark.requirement("DP-STREAMS-03", "DP-STREAMS-04", "DP-STREAMS-12", "DP-STREAMS-02")
def test_a_group_waits_for_its_topics() -> None:
    at = Streams(topics=(), topology=COUNTING)
    result = at.join()
    assert [(each.code, each.detail) for each in result.statuses or ()] == [
        (1, "Source topics foo are missing.")
    ]
    assert (at.state, result.missing, at.group.epoch) == ("NotReady", (), 2)
    at.cluster.topics.create([NewTopic("foo", 2)])
    result = at.beat()
    assert [each.code for each in result.statuses or ()] == [3]
    assert (at.group.epoch, at.target("a")) == (3, [])
    at.create(result)
    result = at.beat()
    assert (result.statuses, at.state, at.group.epoch) == ((), "Stable", 4)
    assert at.active("a") == ["0_0", "0_1", "1_0", "1_1"]


# ---- the assignor --------------------------------------------------------------------------------


@pytest.mark.requirement("DP-STREAMS-18")
def test_tasks_are_balanced_and_stay() -> None:
    first = sticky({"a": Worker("p")}, {"0": 4}, (), 0)
    assert first == {"a": Tasks(tasks("0_0", "0_1", "0_2", "0_3"))}
    second = sticky({"a": Worker("p", first["a"]), "b": Worker("q")}, {"0": 4}, (), 0)
    assert second == {"a": Tasks(tasks("0_0", "0_1")), "b": Tasks(tasks("0_2", "0_3"))}
    third = sticky({"b": Worker("q", second["b"])}, {"0": 4}, (), 0)
    assert third["b"].active == first["a"].active
    assert sticky({}, {"0": 4}, (), 0) == {}


@pytest.mark.requirement("DP-STREAMS-18")
def test_hash_tables_of_java_decide_between_equals() -> None:
    """Their order is p, b for members, and d, b for processes, whose table has four slots."""
    one = tasks("0_0")
    assert sticky({"b": Worker("x"), "p": Worker("x")}, {"0": 1}, (), 0)["p"].active == one
    assert sticky({"a": Worker("b"), "c": Worker("d")}, {"0": 1}, (), 0)["c"].active == one


@pytest.mark.requirement("DP-STREAMS-18")
def test_standbys_are_in_other_processes() -> None:
    workers = {"a": Worker("p"), "b": Worker("p"), "c": Worker("q")}
    found = sticky(workers, {"0": 3, "1": 3}, ("1",), 1)
    for process in "pq":
        held = [
            task
            for member, each in found.items()
            if workers[member].process_id == process
            for task in (*each.active, *each.standby)
        ]
        assert len(held) == len(set(held))
    standby = [task for each in found.values() for task in each.standby]
    assert sorted(standby) == [("1", 0), ("1", 1), ("1", 2)]
    assert not sticky({"a": Worker("p")}, {"1": 3}, ("1",), 1)["a"].standby, "there is no room"


@pytest.mark.requirement("DP-STREAMS-18")
def test_a_standby_becomes_active_where_it_is() -> None:
    former = {
        "a": Tasks(tasks("0_0"), tasks("0_1")),
        "b": Tasks(tasks("0_1"), tasks("0_2")),
        "c": Tasks(tasks("0_2"), tasks("0_0")),
    }
    left = {name: Worker(name, former[name]) for name in "bc"}
    found = sticky(left, {"0": 3}, ("0",), 1)
    assert found["c"].active == tasks("0_2", "0_0")
    assert found["b"] == Tasks(tasks("0_1"), tasks("0_0", "0_2"))


@pytest.mark.requirement("DP-STREAMS-18")
def test_random_groups_are_balanced() -> None:
    chance = random.Random(4)
    for _ in range(50):
        counts = {str(each): chance.randrange(1, 6) for each in range(chance.randrange(1, 4))}
        workers = {f"m{n}": Worker(f"p{n}") for n in range(chance.randrange(1, 6))}
        standbys = chance.randrange(3)
        for _ in range(3):
            found = sticky(workers, counts, counts, standbys)
            active = [task for each in found.values() for task in each.active]
            assert sorted(active) == [
                (name, index) for name in sorted(counts) for index in range(counts[name])
            ]
            sizes = [len(each.active) for each in found.values()]
            assert max(sizes) - min(sizes) <= 1 or standbys
            copies = sum(len(each.standby) for each in found.values())
            assert copies == len(active) * min(standbys, len(workers) - 1)
            assert all(not each.active & each.standby for each in found.values())
            workers = {
                name: Worker(each.process_id, found[name])
                for name, each in workers.items()
                if len(workers) == 1 or chance.random() < 0.8
            } or workers


@pytest.mark.requirement("DP-STREAMS-25")
@pytest.mark.parametrize(("release", "second", "third"), [(OLD, ["0_1"], []), (NEW, [], ["0_1"])])
def test_tasks_stay_where_they_are_and_not_where_they_were_to_go(release, second, third):
    """The second member waits for a task of the first when the third joins."""
    at = Streams(release, ("foo:2:1",))
    at.join("a", process_id="p")
    at.join("b", process_id="p")
    at.join("c", process_id="q")
    assert (at.target("a"), at.target("b"), at.target("c")) == (["0_0"], second, third)


@pytest.mark.requirement("DP-STREAMS-26")
@pytest.mark.parametrize("furthest", ["b", "c"])
def test_the_furthest_offset_takes_a_task(furthest: str) -> None:
    at = Streams(NEW)
    at.join("a")
    for name in "bc":
        at.join(name, task_offsets=(("0", 3, 7 if name == furthest else 5),))
    other = "b" if furthest == "c" else "c"
    assert (at.target(furthest), at.target(other)) == (["0_3"], ["0_2"])


@pytest.mark.requirement("DP-STREAMS-26")
def test_a_standby_goes_before_an_offset() -> None:
    workers = {
        "a": Worker("p", offsets=(("0", 0, 9),)),
        "b": Worker("q", Tasks(standby=tasks("0_0"))),
    }
    assert sticky(workers, {"0": 1}, (), 0)["b"].active == tasks("0_0")


# ---- reconciliation ------------------------------------------------------------------------------


def two(release: tuple[int, int] = NEW) -> Streams:
    """Member a has everything, b has just joined."""
    at = Streams(release)
    at.join("a")
    at.join("b")
    return at


@pytest.mark.requirement("DP-STREAMS-13", "DP-STREAMS-04")
@pytest.mark.parametrize("release", [OLD, NEW])
def test_tasks_are_given_up_before_others_get_them(release: tuple[int, int]) -> None:
    at = two(release)
    assert (at.member_state("b"), at.active("b"), at.state) == (
        (3, "UNRELEASED"),
        [],
        "Reconciling",
    )
    result = at.beat("a")
    assert (result.member_epoch, at.member_state("a")) == (2, (2, "UNREVOKED"))
    assert result.tasks == Tasks(tasks("0_0", "0_1"))
    for owned in (None, Tasks(tasks("0_0", "0_3"))):
        assert at.beat("a", owned=owned).tasks is None
        assert at.member_state("a") == (2, "UNREVOKED")
    assert at.beat("b").tasks is None
    assert at.beat("a", owned=True).member_epoch == 3
    assert (at.member_state("a"), at.state) == ((3, "STABLE"), "Reconciling")
    result = at.beat("b")
    assert (result.tasks, at.state) == (Tasks(tasks("0_2", "0_3")), "Stable")
    assert dict(at.member("a").epochs) == dict.fromkeys(tasks("0_0", "0_1"), 2)
    assert dict(at.member("b").epochs) == dict.fromkeys(tasks("0_2", "0_3"), 3)


@pytest.mark.requirement("DP-STREAMS-13")
def test_a_member_at_its_target_stays() -> None:
    at = two()
    at.settle()
    before = at.member("a")
    assert at.beat("a", owned=True).tasks is None
    assert at.member("a").progress == before.progress


@pytest.mark.requirement("DP-STREAMS-13")
def test_who_does_not_give_up_in_time_is_fenced() -> None:
    at = two()
    at.beat("a")
    at.cluster.turns.advance(40_000)
    at.beat("b")
    at.beat("a")
    at.cluster.turns.advance(20_001)
    assert list(at.group.members) == ["b"]
    at.settle()
    assert len(at.active("b")) == 4


@pytest.mark.requirement("DP-STREAMS-13")
def test_a_member_may_have_to_give_up_more() -> None:
    at = two()
    at.beat("a")
    at.join("c")
    at.beat("a", owned=True)
    assert at.member_state("a")[1] in ("STABLE", "UNREVOKED")
    at.settle()
    assert sorted(len(at.active(each)) for each in "abc") == [1, 1, 2]


def step(
    release: tuple[int, int],
    member: Member,
    target: Tasks,
    owned: Tasks | None = None,
    holders: Holders | None = None,
) -> Member:
    event = Reconciliation(
        member, 9, target, owned, holders or Holders({}, frozenset())
    )  # fmt: skip
    return reconcile(ON_RECONCILE, rows_of_release(ON_DIFFERENCE, Release(release)), event)


@pytest.mark.requirement("DP-STREAMS-14", "DP-STREAMS-15")
def test_a_standby_becomes_active() -> None:
    (task,) = tasks("0_0")
    held = Tasks(standby=tasks("0_0"))
    member = Member("m", process_id="p", epoch=8, assigned=held)
    holders = Holders({}, frozenset([(task, "p")]))
    target = Tasks(tasks("0_0"))
    old = step(OLD, member, target, held, holders)
    assert (old.state, old.revoking, old.epoch) == (MemberState.UNREVOKED, held, 8)
    new = step(NEW, member, target, held, holders)
    assert (new.state, new.assigned, new.epoch) == (MemberState.STABLE, target, 9)
    busy = Holders({task: "q"}, holders.standby)
    waiting = step(NEW, member, target, held, busy)
    assert (waiting.state, waiting.assigned) == (MemberState.UNRELEASED, held), "it keeps its copy"


@pytest.mark.requirement("DP-STREAMS-14", "DP-STREAMS-15")
def test_an_active_task_becomes_a_standby() -> None:
    (task,) = tasks("0_0")
    held, target = Tasks(tasks("0_0")), Tasks(standby=tasks("0_0"))
    member = Member("m", process_id="p", epoch=8, assigned=held, epochs={task: 8})
    holders = Holders({task: "p"}, frozenset())
    old = step(OLD, member, target, held, holders)
    assert (old.state, old.assigned, old.revoking) == (MemberState.UNREVOKED, Tasks(), held)
    new = step(NEW, member, target, held, holders)
    assert (new.state, new.assigned, new.revoking) == (MemberState.UNREVOKED, target, held)


@pytest.mark.requirement("DP-STREAMS-14", "DP-STREAMS-15")
@pytest.mark.parametrize("release", [OLD, NEW])
def test_a_process_has_no_two_copies(release: tuple[int, int]) -> None:
    (task,) = tasks("0_0")
    member = Member("m", process_id="p", epoch=8)
    for holders, target in (
        (Holders({}, frozenset([(task, "p")])), Tasks(tasks("0_0"))),
        (Holders({}, frozenset([(task, "p")])), Tasks(standby=tasks("0_0"))),
        (Holders({task: "p"}, frozenset()), Tasks(standby=tasks("0_0"))),
        (Holders({task: "q"}, frozenset()), Tasks(tasks("0_0"))),
    ):
        found = step(release, member, target, Tasks(), holders)
        assert (found.state, found.assigned) == (MemberState.UNRELEASED, Tasks())
    for holders in (Holders({task: "q"}, frozenset()), Holders({}, frozenset([(task, "q")]))):
        target = Tasks(standby=tasks("0_0"))
        assert step(release, member, target, Tasks(), holders).assigned == target


@pytest.mark.requirement("DP-STREAMS-13", "DP-STREAMS-18")
@pytest.mark.parametrize("release", [OLD, NEW])
def test_standbys_are_assigned(release: tuple[int, int]) -> None:
    at = Streams(
        release,
        ("foo:2:1", "by-key:2:1", "counts:2:1"),
        COUNTING,
        group_streams_num_standby_replicas=1,
    )
    at.join("a")
    at.join("b")
    at.settle()
    assert sorted(at.active("a") + at.active("b")) == ["0_0", "0_1", "1_0", "1_1"]
    assert sorted(at.standby("a") + at.standby("b")) == ["1_0", "1_1"]
    at.leave("a")
    at.settle()
    assert (len(at.active("b")), at.standby("b")) == (4, [])


# ---- steps of a tester ---------------------------------------------------------------------------


@pytest.mark.requirement("DP-STREAMS-22")
def test_steps_of_a_tester() -> None:
    at = two()
    at.settle()
    cluster = at.cluster
    Operations(cluster).rebalance("g")
    assert at.state == "Assigning"
    at.settle()
    Operations(cluster).set_target_assignment("g", {"b": ["0-0", "0-1", "0-2", "0-3"]})
    at.settle()
    assert (at.active("a"), len(at.active("b"))) == ([], 4)
    with pytest.raises(ClusterError, match="has no task 0-9"):
        Operations(cluster).set_target_assignment("g", {"b": ["0-9"]})
    Operations(cluster).hold_assignment("g")
    Operations(cluster).release_assignor("g")
    with pytest.raises(AssertionError, match="Reconciling"):
        at.settle()
    with pytest.raises(ClusterError, match="held already"):
        Operations(cluster).hold_assignment("g")
    Operations(cluster).release_assignment("g")
    at.settle()
    assert len(at.active("a")) == 2
    for call in (Operations(cluster).release_assignment, Operations(cluster).release_assignor):
        with pytest.raises(ClusterError, match="not"):
            call("g")
    Operations(cluster).shutdown_application("g", "a")
    assert [each.code for each in at.beat("b").statuses or ()] == [4]
    Operations(cluster).set_generation("g", 40)
    assert at.beat("a", 5).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert at.beat("a").member_epoch == 40
    with pytest.raises(ClusterError, match="an epoch is"):
        Operations(cluster).set_generation("g", -1)
    Operations(cluster).expire_member("g", "a")
    Operations(cluster).remove_member("g", "b")
    assert at.state == "Empty"
    at.join("a", instance_id="i")
    Operations(cluster).fence_instance("g", "i")
    assert at.beat("a", 1, instance_id="i").error_code == ErrorCode.FENCED_INSTANCE_ID
    with pytest.raises(ClusterError, match="has no instance 'j'; its instances: i"):
        Operations(cluster).fence_instance("g", "j")
    with pytest.raises(ClusterError, match="has no member 'z'"):
        Operations(cluster).expire_member("g", "z")
    with pytest.raises(ClusterError, match="is a streams group"):
        Operations(cluster).hold_joins("g")
    with pytest.raises(ClusterError, match="there is no streams group 'h'"):
        Operations(cluster).shutdown_application("h", "a")


@pytest.mark.requirement("DP-STREAMS-12")
def test_a_plain_topology_has_no_state() -> None:
    assert configure(PLAIN, {"foo": 2}).stateful == frozenset()
