"""StreamsGroupHeartbeat: which requests are refused, how epochs rise, what answers say."""

from typing import Any

import pytest
from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.simulation.configs.changes import SET
from mockbroker.simulation.groups.classic.classic_group import JoinRequest, JoinResult
from mockbroker.simulation.groups.modern.group_times import GroupTimes
from mockbroker.simulation.groups.streams.streams_group import StreamsResult, Tasks
from mockbroker.simulation.groups.streams.streams_settings import StreamsSettings, streams_settings
from mockbroker.simulation.groups.streams.topology import InternalTopic, Subtopology, Topology
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_state import GROUP
from mockbroker.simulation.state.results import NewTopic
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.groups.members import RANGE, Answer
from tests.mockbroker.simulation.groups.modern_members import refused
from tests.mockbroker.simulation.groups.streams import COUNTING, PLAIN, Streams, tasks

INVALID = ErrorCode.INVALID_REQUEST
_INCONSISTENT = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
OLD, NEW = (4, 3), (4, 4)
REGEX = Topology(0, (Subtopology("0", ("foo",), source_regexes=("f.*",)),))
SIZED = Topology(0, (Subtopology("0", ("foo",), changelogs=(InternalTopic("log", 3),)),))


@pytest.mark.requirement("DP-STREAMS-01")
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"member": " "}, "MemberId can't be empty."),
        ({"group": ""}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"active": tasks("0_0")}, "ActiveTasks must be empty when (re-)joining."),
        ({"standby": tasks("0_0")}, "StandbyTasks must be empty when (re-)joining."),
        ({"warmup": tasks("0_0")}, "WarmupTasks must be empty when (re-)joining."),
        *(
            (
                {"empty_rows": frozenset({kind})},
                f"{kind.capitalize()}Tasks must be empty when (re-)joining.",
            )
            for kind in ("active", "standby", "warmup")
        ),
        ({"topology": None}, "Topology must be non-null when (re-)joining."),
        ({"active": None}, "ActiveTasks must be empty when (re-)joining."),
        ({"standby": None}, "StandbyTasks must be empty when (re-)joining."),
        ({"warmup": None}, "WarmupTasks must be empty when (re-)joining."),
    ],
)
def test_joins_that_are_refused(fields: dict[str, Any], text: str) -> None:
    at = Streams()
    assert refused(at.join(fields.pop("member", "a"), **fields)) == (INVALID, text)
    assert at.groups.groups == {}


@pytest.mark.requirement("DP-STREAMS-01")
def test_changelogs_have_as_many_partitions_as_there_are_tasks() -> None:
    result = Streams().join(topology=SIZED)
    assert result.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert result.error_message == (
        "Changelog topic log must have an undefined partition count, but it is set to 3."
    )


@pytest.mark.requirement("DP-STREAMS-01")
@pytest.mark.parametrize(
    ("epoch", "fields", "text"),
    [
        (-2, {}, "InstanceId can't be null."),
        (-3, {}, "MemberEpoch is -3, but must be greater than or equal to -2."),
        (2, {"topology": PLAIN}, "Topology can only be provided when (re-)joining."),
        (2, {"active": tasks()}, "If one task-type is non-null, all must be non-null."),
        (2, {"standby": tasks()}, "If one task-type is non-null, all must be non-null."),
    ],
)
def test_heartbeats_that_are_refused(epoch: int, fields: dict[str, Any], text: str) -> None:
    at = Streams()
    at.join()
    assert refused(at.beat("a", epoch, **fields)) == (INVALID, text)


@pytest.mark.requirement("DP-STREAMS-01")
def test_a_heartbeat_may_say_nothing_new() -> None:
    at = Streams()
    epoch = at.join().member_epoch
    assert at.beat("a", epoch).error_code == ErrorCode.NONE


@pytest.mark.requirement("DP-STREAMS-08")
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"instance_id": "i"}, "Static membership is not yet supported."),
        ({"task_offsets": ()}, "TaskOffsets are not supported yet."),
        ({"task_end_offsets": ()}, "TaskEndOffsets are not supported yet."),
        ({"warmup": tasks("0_0")}, "WarmupTasks are not supported yet."),
        ({"empty_rows": frozenset({"warmup"})}, "WarmupTasks are not supported yet."),
    ],
)
def test_what_came_with_4_4(fields: dict[str, Any], text: str) -> None:
    assert refused(Streams(OLD).join(**fields)) == (INVALID, text)
    for tasks_of_4_4 in ("warmup", "empty_rows"):
        fields.pop(tasks_of_4_4, None)
    assert Streams(NEW).join(**fields).error_code == 0


@pytest.mark.requirement("DP-STREAMS-08")
@pytest.mark.parametrize("release", [OLD, NEW])
def test_regular_expressions_and_repeated_offsets_are_refused(release: tuple[int, int]) -> None:
    at = Streams(release)
    result = at.join(topology=REGEX)
    text = "Regular expressions for source topics are not supported yet."
    assert (result.error_code, result.error_message) == (INVALID, text)
    if release == NEW:
        at.join()
        assert refused(at.beat(task_offsets=(("0", 1, 5), ("0", 1, 6)))) == (
            INVALID,
            "Task offsets contain a duplicate entry for subtopology 0 and partition 1.",
        )
        at.beat(task_offsets=(("0", 1, 5),))
        at.beat(task_end_offsets=(("0", 1, 9),))
        assert at.group.offsets["a"] == ((("0", 1, 5),), (("0", 1, 9),))


# ---- groups --------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-STREAMS-09")
@pytest.mark.parametrize(("release", "target_epoch"), [((4, 2), 0), (OLD, 1), (NEW, 1)])
def test_a_new_group_is_at_epoch_2(release: tuple[int, int], target_epoch: int) -> None:
    at = Streams(release, group_streams_initial_rebalance_delay_ms=1000)
    assert (at.join().member_epoch, at.group.epoch, at.group.target_epoch) == (1, 2, target_epoch)


@pytest.mark.requirement("DP-STREAMS-09", "DP-STREAMS-20")
@pytest.mark.parametrize("release", [(4, 2), NEW])
def test_an_empty_classic_group_becomes_a_streams_group_and_back(release: tuple[int, int]) -> None:
    at = Streams(release, group_streams_initial_rebalance_delay_ms=1000)
    Operations(at.cluster).set_offset("g", "foo-0", 3)
    at.join()
    assert (at.state, at.group.target_epoch) == ("Assigning", 0 if release < OLD else 1)
    for code, session_ms in ((ErrorCode.INVALID_SESSION_TIMEOUT, 1), (_INCONSISTENT, 10_000)):
        answer = Answer[JoinResult]()
        at.cluster.groups.join(JoinRequest("g", "", "consumer", RANGE, session_ms, 1000), answer)
        assert answer.code == code
    at.leave()
    joined = Answer[JoinResult]()
    at.cluster.groups.join(JoinRequest("g", "", "consumer", RANGE, 10_000, 1000), joined)
    assert at.state == "none"
    assert at.cluster.groups.classic.group("g") is not None


# ---- members -------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-STREAMS-10")
@pytest.mark.parametrize(("release", "again"), [(OLD, ErrorCode.GROUP_MAX_SIZE_REACHED), (NEW, 0)])
def test_a_group_may_be_full(release: tuple[int, int], again: int) -> None:
    at = Streams(release, group_streams_max_size=1)
    at.join()
    assert refused(at.join("b")) == (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The streams group has reached its maximum capacity of 1 members.",
    )
    assert at.join("a").error_code == again
    assert at.beat("a").error_code == 0


@pytest.mark.requirement("DP-STREAMS-10")
def test_an_answer_may_be_lost() -> None:
    at = Streams()
    at.join()
    Operations(at.cluster).rebalance("g")
    at.beat(owned=True)
    assert at.member_state("a") == (3, "STABLE")
    assert at.beat("a", 2, owned=True).error_code == 0
    assert at.beat("a", 2, owned=Tasks(tasks("0_9"))).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert at.beat("a", 2).error_code == ErrorCode.FENCED_MEMBER_EPOCH


@pytest.mark.requirement("REL-25")
@pytest.mark.parametrize(("has_fix", "code"), [(True, 0), (False, 110)])
def test_a_member_joins_again_with_epoch_0(has_fix: bool, code: int) -> None:
    at = Streams(fixes=(("KAFKA-19233", has_fix),))
    at.join()
    Operations(at.cluster).rebalance("g")
    at.beat(owned=True)
    assert at.join("a").error_code == code


@pytest.mark.requirement("DP-STREAMS-12")
@pytest.mark.parametrize(("release", "state"), [(OLD, (3, 2)), (NEW, (3, 3))])
def test_members_leave(release: tuple[int, int], state: tuple[int, int]) -> None:
    at = Streams(release)
    at.join()
    result = at.leave()
    assert (result.error_code, result.member_id, result.member_epoch) == (0, "a", -1)
    assert result.statuses == ()
    assert (at.state, (at.group.epoch, at.group.target_epoch)) == ("Empty", state)
    at.join("a")
    at.join("b")
    at.leave("a")
    assert at.group.epoch == at.group.target_epoch + 1, "others need another target"


# ---- static members ------------------------------------------------------------------------------


@pytest.mark.requirement("DP-STREAMS-16")
def test_a_static_member_comes_back() -> None:
    at = Streams()
    at.join("a", instance_id="i")
    epoch, active = at.group.epoch, at.active("a")
    result = at.leave("a", -2, instance_id="i")
    assert (result.error_code, result.member_epoch, at.member("a").epoch) == (0, -2, -2)
    result = at.join("b", instance_id="i", process_id="process-a")
    assert (result.error_code, result.member_epoch) == (0, epoch)
    assert (list(at.group.members), at.active("b"), at.group.epoch) == (["b"], active, epoch)
    at.leave("b", instance_id="i")
    assert at.state == "Empty"


@pytest.mark.requirement("DP-STREAMS-16")
def test_a_static_member_in_another_process_needs_another_target() -> None:
    at = Streams()
    at.join("a", instance_id="i")
    epoch = at.group.epoch
    at.leave("a", -2, instance_id="i")
    at.join("b", instance_id="i", process_id="other")
    assert at.group.epoch == epoch + 1


@pytest.mark.requirement("DP-STREAMS-16", "DP-STREAMS-10")
def test_instances_that_are_refused() -> None:
    at = Streams(group_streams_max_size=1)
    at.join("a", instance_id="i")
    assert refused(at.join("b", instance_id="i")) == (
        ErrorCode.UNRELEASED_INSTANCE_ID,
        "Static member b with instance id i cannot join the group because the instance id is owned "
        "by a member.",
    )
    for epoch in (2, -1, -2):
        assert refused(at.beat("b", epoch, instance_id="i")) == (
            ErrorCode.FENCED_INSTANCE_ID,
            "Static member b with instance id i was fenced by member a.",
        )
        assert refused(at.beat("a", epoch, instance_id="j")) == (
            ErrorCode.UNKNOWN_MEMBER_ID,
            "Instance id j is unknown.",
        )
    assert at.beat("a", instance_id="i").error_code == 0


# ---- topologies and epochs -----------------------------------------------------------------------


@pytest.mark.requirement("DP-STREAMS-11")
def test_the_topology_is_that_of_the_first_member() -> None:
    at = Streams()
    at.join()
    result = at.join("b", topology=COUNTING)
    text = "Topology updates are not supported yet."
    assert (result.error_code, result.error_message) == (INVALID, text)
    assert at.join("b").error_code == 0
    assert at.group.topology == PLAIN


@pytest.mark.requirement("DP-STREAMS-02", "DP-STREAMS-11")
def test_a_member_with_an_older_topology() -> None:
    at = Streams(topology=replace(PLAIN, epoch=3))
    at.join()
    result = at.join("b", topology=COUNTING)
    assert [tuple(map(str, (each.code, each.detail))) for each in result.statuses or ()] == [
        ("0", "The member's topology epoch 0 is behind the group's topology epoch 3.")
    ]
    assert at.group.topology == replace(PLAIN, epoch=3)


@pytest.mark.requirement("DP-STREAMS-11")
@pytest.mark.parametrize(
    ("task", "text"),
    [
        ("1_0", "Subtopology 1 does not exist in the topology."),
        ("0_4", "Task 4 for subtopology 0 is invalid. Number of tasks for this subtopology: 4"),
    ],
)
def test_tasks_that_do_not_exist(task: str, text: str) -> None:
    at = Streams()
    at.join()
    assert refused(at.beat(owned=Tasks(tasks(task)))) == (INVALID, text)


@pytest.mark.requirement("DP-STREAMS-12")
def test_what_raises_the_epoch() -> None:
    at = Streams()
    at.join()
    assert (at.group.epoch, at.group.target_epoch) == (2, 2)
    made_ms = at.group.target_ms
    at.cluster.turns.advance(5)
    at.beat()
    assert (at.group.epoch, at.group.target_ms) == (2, made_ms), "nothing changed"
    at.beat(rack_id="r")
    assert at.group.epoch == 3
    at.cluster.topics.add_partitions([("foo", 6, None)])
    at.beat(owned=True)
    assert (at.group.epoch, at.group.target_epoch) == (4, 4)
    assert len(at.target("a")) == 6
    at.join("b")
    assert at.group.epoch == 5


@pytest.mark.requirement("DP-STREAMS-12")
def test_configs_of_the_assignor_raise_the_epoch() -> None:
    at = Streams()
    at.join()
    changes = [("streams.num.standby.replicas", 0, "1")]
    at.cluster.config_changes.alter_incrementally([(32, "g", changes)])
    at.beat()
    assert at.group.epoch == 3
    assert dict(at.group.configs) == {"num.standby.replicas": "1"}


@pytest.mark.requirement("DP-STREAMS-12", "DP-STREAMS-02")
@pytest.mark.parametrize("release", [(4, 2), OLD])
def test_targets_have_an_interval(release: tuple[int, int]) -> None:
    configs = {} if release < OLD else {"group_streams_assignment_interval_ms": 1000}
    at = Streams(release, **configs)
    at.cluster.turns.advance(1)
    at.join()
    result = at.join("b")
    if release < OLD:
        assert (result.statuses, at.group.target_epoch) == ((), 3)
        return
    text = "Assignment delayed due to the configured assignment interval."
    assert [(each.code, each.detail) for each in result.statuses or ()] == [(5, text)]
    assert (at.group.epoch, at.group.target_epoch, at.state) == (3, 2, "Assigning")
    at.cluster.turns.advance(1000)
    assert at.beat("b").statuses == ()
    assert at.group.target_epoch == 3


@pytest.mark.requirement("DP-STREAMS-05", "DP-STREAMS-02", "DP-STREAMS-04")
def test_the_first_target_may_be_delayed() -> None:
    at = Streams(group_streams_initial_rebalance_delay_ms=500)
    result = at.join()
    text = "Assignment delayed due to the configured initial rebalance delay."
    assert [(each.code, each.detail) for each in result.statuses or ()] == [(5, text)]
    assert (result.member_epoch, result.tasks, at.state) == (1, Tasks(), "Assigning")
    at.join("b")
    assert at.beat("a").statuses != ()
    at.cluster.turns.advance(500)
    assert at.group.target_epoch == at.group.epoch
    assert sorted(len(at.target(each)) for each in "ab") == [2, 2]
    at.settle()
    assert at.state == "Stable"


@pytest.mark.requirement("DP-STREAMS-05")
def test_groups_are_not_delayed_unless_that_is_set() -> None:
    at = Streams()
    at.join()
    assert (at.group.is_delayed, at.state) == (False, "Stable")
    configs = simulated_cluster(1, release=NEW).configs
    assert streams_settings(configs, "g", 1).initial_delay_ms == 0
    assert configs.group("g", "streams.initial.rebalance.delay.ms", 1).value == "3000"
    old = simulated_cluster(1, release=(3, 9)).configs
    assert streams_settings(old, "g", 1) == StreamsSettings(False, 0, GroupTimes(0, 0, 0))


@pytest.mark.requirement("DP-STREAMS-24")
@pytest.mark.parametrize(("release", "delay_ms"), [((4, 2), 3000), ((4, 3), 0)])
def test_delays_of_groups_with_configs(release: tuple[int, int], delay_ms: int) -> None:
    name = "group.streams.initial.rebalance.delay.ms"
    cluster = simulated_cluster(1, release=release, broker_configs={name: "0"})
    change = (GROUP, "g", [("streams.session.timeout.ms", SET, "50000")])
    cluster.config_changes.alter_incrementally([change])
    assert streams_settings(cluster.configs, "g", 1).initial_delay_ms == delay_ms
    assert streams_settings(cluster.configs, "other", 1).initial_delay_ms == 0
    unset = simulated_cluster(1, release=release)
    unset.config_changes.alter_incrementally([change])
    assert streams_settings(unset.configs, "g", 1).initial_delay_ms == 0


@pytest.mark.requirement("DP-STREAMS-02")
def test_the_application_shuts_down() -> None:
    at = Streams()
    at.join("a")
    at.join("b")
    result = at.beat("a", shutdown=True)
    text = (
        "Streams group member a encountered a fatal error and requested a shutdown for the entire "
        "application."
    )
    assert [(each.code, each.detail) for each in result.statuses or ()] == [(4, text)]
    assert [each.detail for each in at.beat("b").statuses or ()] == [text]
    at.leave("a")
    at.leave("b", shutdown=True)
    assert (at.state, at.group.shutdown_member) == ("Empty", None)
    at.join("a")
    assert at.beat("a").statuses == ()
    at.join("b")
    at.leave("b", shutdown=True)
    assert [each.detail for each in at.beat("a").statuses or ()] == [text.replace(" a ", " b ", 1)]


@pytest.mark.requirement("DP-STREAMS-02")
def test_client_tags_that_are_missing() -> None:
    at = Streams(group_streams_rack_aware_assignment_tags="zone,rack")
    assert at.join(version=0, tags=(("zone", "z"),)).statuses == ()
    result = at.beat(version=1)
    text = (
        "Missing required client tags for rack-aware standby assignment: [rack]. Configure them "
        "via 'client.tag.<tagKey>' in your Streams config."
    )
    assert [(each.code, each.detail) for each in result.statuses or ()] == [(6, text)]
    assert at.beat(version=1, tags=(("rack", "r"), ("zone", "z"))).statuses == ()
    assert dict(at.group.configs)["rack.aware.assignment.tags"] == "zone,rack"


# ---- endpoints -----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-STREAMS-06")
@pytest.mark.parametrize("release", [OLD, NEW])
def test_endpoints_and_their_partitions(release: tuple[int, int]) -> None:
    topics = ("foo:4:1", "bar:1:1")
    both = Topology(0, (Subtopology("0", ("foo", "bar")),))
    at = Streams(release, topics, both)
    result = at.join("a", endpoint=("host", 1), endpoint_epoch=-1)
    assert (result.endpoint_epoch, at.group.endpoint_epoch) == (0, 0), "the group was just made"
    (found,) = result.endpoints or ()
    assert (found.endpoint, dict(found.active)) == (("host", 1), {"bar": (0,), "foo": (0, 1, 2, 3)})
    result = at.join("b", endpoint_epoch=-1)
    assert [each.endpoint for each in result.endpoints or ()] == [("host", 1)]
    at.settle()
    assert at.group.endpoint_epoch >= 1, "a gave up tasks"
    epoch = at.group.endpoint_epoch
    assert at.beat("b", endpoint_epoch=epoch).endpoints is None
    assert at.active("a") == ["0_0", "0_1"]
    result = at.join("c", endpoint=("other", 2), endpoint_epoch=epoch)
    assert result.endpoint_epoch == epoch + 1
    at.settle()
    by_host = {each.endpoint[0]: dict(each.active) for each in at.beat("b").endpoints or ()}
    assert by_host["host"]["bar"] == (0,)
    assert ("bar" in by_host["other"]) == (release == OLD)
    epoch = at.group.endpoint_epoch
    rejoined = at.join("c", endpoint=None, owned=Tasks())
    assert (at.member("c").endpoint is None) == (release == NEW)
    assert rejoined.endpoint_epoch > epoch


@pytest.mark.requirement("DP-STREAMS-06")
def test_endpoints_are_not_told_while_source_topics_are_missing() -> None:
    at = Streams(NEW, (), Topology(0, (Subtopology("0", ("foo",)),)))
    failed = at.join("a", endpoint=("host", 1), endpoint_epoch=-1)
    assert failed == StreamsResult(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert at.groups.groups == {}
    assert at.join("a", endpoint_epoch=-1).endpoints == ()
    # The epoch is in memory alone, and stays raised.
    assert at.join("b", endpoint=("host", 1)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (at.group.endpoint_epoch, list(at.group.members)) == (1, ["a"])
    joined = at.join("b", endpoint=("host", 1), endpoint_epoch=2)
    assert (joined.error_code, joined.endpoints, joined.endpoint_epoch) == (0, None, 2)
    assert at.beat("a", endpoint_epoch=1).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    at.cluster.topics.create([NewTopic("foo")])
    assert [each.endpoint for each in at.beat("a", endpoint_epoch=1).endpoints or ()] == [
        ("host", 1)
    ]


@pytest.mark.requirement("DP-STREAMS-12")
def test_a_member_that_is_no_longer_static_raises_the_epoch_again() -> None:
    at = Streams(NEW, ("foo:1:1",), Topology(0, (Subtopology("0", ("foo",)),)))
    at.join("a")
    epoch = at.group.epoch
    at.join("a", instance_id="i")
    assert at.group.epoch == epoch
    at.join("a", endpoint=("host", 1))
    assert (at.member("a").instance_id, at.group.epoch) == ("i", epoch + 1)
