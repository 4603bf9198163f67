"""ConsumerGroupHeartbeat: who is refused, what a member gets, when it is fenced."""

import base64
import math
import re
import uuid
from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_group import JoinRequest
from mockbroker.simulation.groups.consumer import consumer_settings as settings
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulation.groups.consumers import Consumers
from tests.mockbroker.simulation.groups.modern_members import refused

# ---- the request itself --------------------------------------------------------------------------


@pytest.mark.requirement("DP-CGH-03")
def test_a_member_has_an_id() -> None:
    at = Consumers()
    missing = (ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
    assert refused(at.join("")) == missing
    assert refused(at.join(" ")) == missing
    assert refused(at.beat("", 3, needs_member_id=False)) == missing
    assert refused(at.leave("", needs_member_id=False)) == missing
    assert at.state == "none"
    at.join()
    # A static member may leave without one, though nobody has an empty id.
    result = at.leave("", -2, instance_id="one", needs_member_id=False)
    assert result.error_message == "Instance id one is unknown."


@pytest.mark.requirement("DP-CGH-19")
def test_version_0_gets_a_member_id() -> None:
    at, other = Consumers(), Consumers()
    first, second = (at.join("", needs_member_id=False) for _ in range(2))
    assert (first.error_code, second.error_code) == (0, 0)
    assert list(at.group.members) == [first.member_id, second.member_id]
    drawn = base64.urlsafe_b64decode(str(first.member_id) + "==")
    assert (len(str(first.member_id)), uuid.UUID(bytes=drawn).version) == (22, 4)
    assert other.join("", needs_member_id=False).member_id == first.member_id, "the same each run"
    assert at.join("mine", needs_member_id=False).member_id == "mine"


@pytest.mark.requirement("DP-CGH-04")
@pytest.mark.parametrize(
    ("field", "text"), [("group", "GroupId"), ("instance_id", "InstanceId"), ("rack_id", "RackId")]
)
def test_ids_are_not_blank(field: str, text: str) -> None:
    at = Consumers()
    for blank in ("", "  "):
        problem = (ErrorCode.INVALID_REQUEST, f"{text} can't be empty.")
        assert refused(at.join(**{field: blank})) == problem


@pytest.mark.requirement("DP-CGH-05", "DP-CGH-06", "DP-CGH-07")
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"owned": ["foo-0"]}, "TopicPartitions must be empty when (re-)joining."),
        ({"has_empty_rows": True}, "TopicPartitions must be empty when (re-)joining."),
        ({"owned": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"topics": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        ),
    ],
)
def test_a_member_that_joins_says_what_it_wants(fields: dict[str, Any], text: str) -> None:
    at = Consumers()
    assert refused(at.join(**fields)) == (ErrorCode.INVALID_REQUEST, text)
    at.join("b")
    at.settle()
    assert at.beat("b").error_code == 0, "later heartbeats may leave everything out"


@pytest.mark.requirement("DP-CGH-07")
def test_a_member_may_subscribe_to_nothing() -> None:
    at = Consumers()
    assert at.join("a", topics=[]).error_code == 0
    assert at.join("b", topics=None, topic_regex="").error_code == 0
    assert (at.group.epoch, at.state) == (1, "Stable"), "there is nothing to assign"


@pytest.mark.requirement("DP-CGH-08")
def test_epochs_below_zero_mean_something() -> None:
    at = Consumers()
    at.join()
    invalid = ErrorCode.INVALID_REQUEST
    assert refused(at.beat(epoch=-2)) == (invalid, "InstanceId can't be null.")
    assert refused(at.beat(epoch=-3)) == (invalid, "MemberEpoch is invalid.")


@pytest.mark.requirement("DP-CGH-09")
def test_an_assignor_is_one_of_the_brokers() -> None:
    at = Consumers()
    code = ErrorCode.UNSUPPORTED_ASSIGNOR
    text = "ServerAssignor {} is not supported. Supported assignors: uniform, range."
    assert refused(at.join(assignor="sticky")) == (code, text.format("sticky"))
    assert refused(at.join(assignor="")) == (code, text.format(""))
    assert at.join(assignor="range").error_code == 0
    only = Consumers(group_consumer_assignors="range")
    assert "Supported assignors: range." in str(only.join(assignor="uniform").error_message)


# ---- the group -----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-CGH-11")
def test_a_classic_group_is_no_consumer_group() -> None:
    at = Consumers()
    request = JoinRequest("g", "", "consumer", (("range", b"meta"),), 10_000, 60_000)
    at.cluster.groups.join(request, lambda _result: None)
    other = (ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a consumer group.")
    assert refused(at.beat("a", 1)) == other
    assert refused(at.leave()) == other


# ---- the member ----------------------------------------------------------------------------------


@pytest.mark.requirement("REL-26", "DP-CGH-12")
@pytest.mark.parametrize(("release", "code"), [((4, 3), 81), ((4, 4), 0)])
def test_a_static_member_returns_to_a_full_group(release: tuple[int, int], code: int) -> None:
    at = Consumers(release, group_consumer_max_size=1)
    at.join("a", instance_id="i")
    assert at.join("b", instance_id="i").error_code == (111 if code == 0 else code), "a is here"
    at.leave("a", -2, instance_id="i")
    assert at.join("b").error_code == 81
    assert at.join("b", instance_id="i").error_code == code


@pytest.mark.requirement("REL-25", "DP-CGH-16")
@pytest.mark.parametrize(("release", "code"), [((4, 1), 110), ((4, 2), 0)])
def test_a_member_joins_again_with_epoch_0(release: tuple[int, int], code: int) -> None:
    at = Consumers(release)
    for member in ("a", "b", "c"):
        at.join(member)
    at.settle()
    assert at.group.members["a"].previous_epoch > 0
    assert at.join("a").error_code == code
    assert at.join("b", instance_id="new").error_code == 0, "its epoch is not read"
    assert at.join("d").error_code == 0


@pytest.mark.requirement("DP-CGH-12")
def test_the_mock_bounds_groups_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "MOST_MEMBERS", 1)
    at = Consumers()
    at.join("a")
    assert at.join("b").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.requirement("DP-CGH-15", "DP-CGH-16")
def test_epochs_are_compared() -> None:
    at = Consumers()
    at.join("a")
    at.join("b")
    at.settle()
    assert at.member_state("a") == (2, "STABLE")
    stale = ErrorCode.FENCED_MEMBER_EPOCH
    assert at.beat("a", 1).error_code == stale, "it does not say what it has"
    assert at.beat("a", 1, owned=["foo-5"]).error_code == stale, "it has more than it should"
    lost = at.beat("a", 1, owned=at.assigned("a")[:1])
    assert (lost.error_code, lost.member_epoch) == (0, 2), "it may have lost the last answer"
    at.groups.force_rebalance("g")
    at.settle()
    assert at.group.epoch == 3
    assert at.beat("a", 1, owned=[]).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert at.beat("a", 2, owned=[]).error_code == 0, "it is only one behind"
    assert at.join("a").error_code == 0, "whoever is fenced joins again"


# ---- leaving -------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-CGH-17")
def test_a_member_leaves() -> None:
    at = Consumers()
    at.join("a")
    at.join("b")
    at.settle()
    result = at.leave("a")
    assert (result.error_code, result.member_id, result.member_epoch) == (0, "a", -1)
    assert (result.interval_ms, result.assignment) == (0, None)
    assert (at.group.epoch, at.group.target_epoch, at.state) == (3, 2, "Assigning")
    at.settle()
    assert len(at.assigned("b")) == 6
    at.leave("b", 12345 - 12346)
    assert (at.state, at.group.epoch) == ("Empty", 4)


@pytest.mark.requirement("DP-CGH-18")
def test_a_static_member_leaves_for_a_while() -> None:
    at = Consumers()
    at.join("a", instance_id="one")
    at.join("b")
    at.settle()
    had, epoch = at.assigned("a"), at.group.epoch
    result = at.leave("a", -2, instance_id="one")
    assert (result.error_code, result.member_id, result.member_epoch) == (0, "a", -2)
    assert (at.assigned("a"), at.group.epoch) == (had, epoch)
    assert (at.member_state("a"), at.state) == ((-2, "STABLE"), "Reconciling")
    back = at.join("a2", instance_id="one")
    assert (back.error_code, back.member_epoch) == (0, epoch)
    assert back.assignment == at.ids(had)
    assert (sorted(at.group.members), at.group.epoch, at.state) == (["a2", "b"], epoch, "Stable")
    assert at.beat("a", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.requirement("DP-CGH-18", "DP-CGH-25")
def test_a_static_member_that_does_not_come_back_is_fenced() -> None:
    at = Consumers()
    at.join("a", instance_id="one")
    at.join("b")
    at.settle()
    at.leave("a", -2, instance_id="one")
    at.advance(44_999)
    at.beat("b", owned=at.assigned("b"))
    assert "a" in at.group.members
    at.advance(1)
    assert (list(at.group.members), at.group.epoch) == (["b"], 3)
    at.settle()
    assert len(at.assigned("b")) == 6


# ---- answers -------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-CGH-24")
def test_the_assignment_is_sent_when_it_matters() -> None:
    at = Consumers()
    result = at.join("a")
    assert (result.member_id, result.member_epoch, result.interval_ms) == ("a", 1, 5_000)
    assert result.assignment == at.ids(f"foo-{i}" for i in range(6))
    assert at.beat("a").assignment is None, "nothing has changed"
    assert at.beat("a", owned=["foo-0"]).assignment is None
    full = {"rebalance_timeout_ms": 60_000, "topics": ["foo"], "owned": []}
    assert at.beat("a", **full).assignment == result.assignment
    for name in full:
        partial = {key: each for key, each in full.items() if key != name}
        assert at.beat("a", **partial).assignment is None, f"without {name} it is not full"
    at.join("b")
    assert len(at.beat("a").assignment or ()) == 3, "half of it goes"


@pytest.mark.requirement("DP-CGH-25")
def test_times_are_the_brokers_or_the_groups() -> None:
    at = Consumers(
        group_consumer_heartbeat_interval_ms=6000, group_consumer_session_timeout_ms=50_000
    )
    assert at.join("a").interval_ms == 6000
    at.cluster.config_changes.alter_incrementally(
        [(32, "g", [
            ("consumer.heartbeat.interval.ms", 0, "7000"),
            ("consumer.session.timeout.ms", 0, "46000"),
        ])]
    )  # fmt: skip
    assert at.beat("a").interval_ms == 7000
    assert at.join("a", group="other").interval_ms == 6000
    at.advance(45_999)
    assert at.state == "Stable"
    at.advance(1)
    assert (at.state, at.group.epoch) == ("Empty", 2)
    assert at.beat("a", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    other = at.groups.group("other")
    assert other is not None
    assert other.members
    at.advance(4000)
    assert not other.members


# ---- epochs and targets --------------------------------------------------------------------------


@pytest.mark.requirement("DP-CGH-21")
def test_the_epoch_rises_with_what_asks_for_another_target() -> None:
    at = Consumers(topics=["foo:6:1", "bar:2:1"])
    at.join("a")
    assert at.group.epoch == 1
    at.beat("a", topics=["foo"])
    assert at.group.epoch == 1, "it is what it was"
    at.beat("a", topics=["foo", "bar"])
    assert at.group.epoch == 2
    at.beat("a", rebalance_timeout_ms=1, rack_id="r", assignor="range")
    assert at.group.epoch == 2, "Kafka does not count these"
    at.join("b", topics=["foo"])
    assert at.group.epoch == 3
    at.leave("b")
    assert at.group.epoch == 4


@pytest.mark.requirement("DP-CGH-21")
def test_a_member_without_topics_asks_for_nothing() -> None:
    at = Consumers()
    at.join("a", topics=["nowhere"])
    assert (at.group.epoch, at.state, at.group.members["a"].assigned) == (1, "Stable", {})


@pytest.mark.parametrize(("release", "epoch"), [((4, 0), 1), ((4, 3), 2)])
@pytest.mark.requirement("DP-CGH-21")
def test_the_epoch_rises_with_changes_of_topics(release: tuple[int, int], epoch: int) -> None:
    at = Consumers(release, topics=["foo:2:1"])
    at.join("a", topics=["foo", "later"])
    at.cluster.topics.add("other:1:1")
    at.beat("a")
    assert at.group.epoch == epoch, "nobody subscribes to it"
    at.cluster.topics.add("later:1:1")
    result = at.beat("a")
    assert at.group.epoch == epoch + 1
    assert at.names(result.assignment or ()) == ["foo-0", "foo-1", "later-0"]
    at.cluster.topics.add_partitions([("foo", 3, None)])
    result = at.beat("a")
    assert (at.group.epoch, len(result.assignment or ())) == (epoch + 2, 4)
    at.cluster.topics.delete([("later", uuid.UUID(int=0))])
    result = at.beat("a", owned=at.ids(["foo-0", "foo-1", "foo-2"]))
    assert (at.group.epoch, at.assigned("a")) == (epoch + 3, ["foo-0", "foo-1", "foo-2"])


@pytest.mark.requirement("DP-CGH-22")
def test_targets_keep_a_distance_since_4_3() -> None:
    at = Consumers((4, 3), group_consumer_assignment_interval_ms=1000)
    at.advance(5)
    at.join("a")
    assert at.group.target_epoch == 2, "the first one comes at once"
    result = at.join("b")
    assert (at.group.epoch, at.group.target_epoch, at.state) == (3, 2, "Assigning")
    assert (result.member_epoch, result.assignment) == (2, frozenset())
    at.advance(999)
    at.beat("a")
    assert at.group.target_epoch == 2
    at.advance(1)
    at.beat("a")
    assert at.group.target_epoch == 3
    assert at.revoking("a") == ["foo-3", "foo-4", "foo-5"]
    before = Consumers((4, 2))
    before.advance(5)
    before.join("a")
    before.join("b")
    assert before.group.target_epoch == 2


@pytest.mark.requirement("DP-CGH-22")
def test_a_running_broker_takes_another_distance() -> None:
    at = Consumers((4, 3), group_consumer_assignment_interval_ms=1000)
    at.advance(5)
    at.join("a")
    at.cluster.config_changes.alter_incrementally(
        [(4, "", [("group.consumer.assignment.interval.ms", 0, "0")])]
    )
    at.join("b")
    assert at.group.target_epoch == 3
    (entry,) = at.cluster.configs.describe(32, "g", ["consumer.assignment.interval.ms"]).configs
    assert [(each.value, each.source) for each in entry.synonyms] == [
        ("0", 3),
        *[("1000", each) for each in (4, 5)],
    ]


@pytest.mark.requirement("DP-CGH-23")
def test_the_assignor_that_most_members_want() -> None:
    at = Consumers(topics=["foo:4:1", "bar:4:1"])
    both = ["foo", "bar"]
    at.join("a", topics=both)
    at.join("b", topics=both, assignor="range")
    at.settle()
    assert (at.assigned("a"), at.assigned("b")) == (
        ["bar-0", "bar-1", "foo-0", "foo-1"], ["bar-2", "bar-3", "foo-2", "foo-3"],
    )  # fmt: skip
    at.join("c", topics=both, assignor="uniform")
    at.join("d", topics=both, assignor="uniform")
    assert at.groups.assignor_name(at.group) == "uniform"
    only = Consumers(group_consumer_assignors="range,uniform")
    only.join("a")
    assert only.groups.assignor_name(only.group) == "range"


@pytest.mark.requirement("DP-CGH-29", "DP-MIGRATE-05")
@pytest.mark.parametrize(("release", "epoch"), [((4, 2), 1), ((4, 3), 2)])
def test_a_new_group_has_an_epoch(release: tuple[int, int], epoch: int) -> None:
    at = Consumers(release)
    assert at.join("a").member_epoch == epoch
    assert (at.group.epoch, at.group.target_epoch, at.state) == (epoch, epoch, "Stable")
    assert at.join("b").member_epoch == epoch + 1
    Operations(at.cluster).set_offset("simple", "foo-0", 0)
    assert at.join("a", group="simple").member_epoch == epoch


@pytest.mark.requirement("DP-CGH-29")
@pytest.mark.parametrize("release", [(4, 2), (4, 3)])
@pytest.mark.parametrize("wanted", [{"topics": []}, {"topics": None, "topic_regex": "f.*"}])
def test_no_member_is_at_epoch_0(release: tuple[int, int], wanted: dict[str, Any]) -> None:
    """Even if there is nothing to assign, or not yet."""
    at = Consumers(release)
    result = at.join("a", **wanted)
    assert (result.member_epoch, result.assignment) == (1, frozenset())
    assert at.group.target_epoch == 1
    before = at.group.epoch
    at.cluster.topics.add("other:1:1")
    assert at.join("b", topics=[]).member_epoch == before
    assert at.group.epoch == before, "only the first one raises it"


@pytest.mark.requirement("DP-CGH-21", "DP-CGH-23")
@pytest.mark.parametrize(("release", "rises"), [((4, 3), False), ((4, 4), True)])
def test_another_assignor_is_another_target_since_4_4(release, rises):
    at = Consumers(release)
    for name, assignor in (("a", "uniform"), ("b", "uniform"), ("c", None), ("d", None)):
        at.join(name, topics=[], assignor=assignor)
    before = at.group.epoch
    for name in "cd":
        at.beat(name, before, topics=[], owned=[], rebalance_timeout_ms=1, assignor="range")
        assert at.group.epoch == before, "the group still uses uniform"
    assert at.groups.assignor_name(at.group) == "uniform", "it wins a tie"
    at.beat("a", before, topics=[], owned=[], rebalance_timeout_ms=1, assignor="range")
    assert at.groups.assignor_name(at.group) == "range"
    assert (at.group.epoch > before) is rises


@pytest.mark.requirement("DP-CGH-27")
def test_states_of_a_group() -> None:
    at = Consumers((4, 3), group_consumer_assignment_interval_ms=1000)
    at.advance(1)
    at.join("a")
    assert at.state == "Stable"
    at.join("b")
    assert at.state == "Assigning"
    at.advance(1000)
    at.beat("a")
    assert at.state == "Reconciling"
    at.settle()
    assert at.state == "Stable"
    at.leave("a")
    at.leave("b")
    assert at.state == "Empty"
    group = at.group
    assert at.groups.delete("g") == 0
    assert group.state == "Dead"


# ---- regular expressions -------------------------------------------------------------------------


@pytest.mark.requirement("DP-CGH-20")
@pytest.mark.parametrize(
    ("regex", "problem"),
    [
        ("(", "missing closing )"),
        (")", "regexp/syntax: internal error"),
        ("(?P<n>a)(?P<n>b)", "duplicate capture group name"),
        ("[a", "missing closing ]"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{2000}", "invalid repeat count"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("[z-a]", "invalid character class range"),
        (r"\8", "invalid escape sequence"),
        ("a\\", "trailing backslash at end of expression"),
    ],
)
def test_regular_expressions_are_those_of_re2(regex: str, problem: str) -> None:
    at = Consumers()
    text = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {problem}."
    refusal = (ErrorCode.INVALID_REGULAR_EXPRESSION, text)
    assert refused(at.join(topic_regex=regex)) == refusal
    assert at.state == "none"
    at.join()
    assert refused(at.beat("a", topic_regex=regex)) == refusal
    assert at.group.members["a"].topic_regex == ""


@pytest.mark.requirement("DP-CGH-20")
def test_topics_follow_after_the_first_answer() -> None:
    at = Consumers(topics=["foo:2:1", "far:1:1", "bar:1:1"])
    result = at.join("a", topic_regex="f.*")
    assert (result.member_epoch, result.assignment) == (1, frozenset())
    assert (at.group.epoch, at.state) == (2, "Assigning")
    result = at.join("a", topic_regex="f.*")
    assert at.names(result.assignment or ()) == ["far-0", "foo-0", "foo-1"]
    at.join("b", topic_regex="f.*")
    assert at.group.epoch == 3, "the expression is resolved already"
    at.settle()
    assert len(at.assigned("a")) + len(at.assigned("b")) == 3


@pytest.mark.requirement("DP-CGH-20")
def test_only_whole_names_match_and_only_visible_ones() -> None:
    at = Consumers(topics=["foo:1:1", "foobar:1:1", "secret-foo:1:1", "fox:1:1"])
    at.join(
        "a", topic_regex="fo.|secret.*",
        visible=lambda names: frozenset(names) - {"secret-foo"},
    )  # fmt: skip
    assert at.group.subscribed == {"foo", "fox"}


@pytest.mark.requirement("DP-CGH-20")
def test_new_topics_are_found_after_ten_seconds() -> None:
    at = Consumers(topics=["foo:1:1"])
    at.join("a", topic_regex="f.*")
    at.join("a", topic_regex="f.*")
    at.cluster.topics.add("far:1:1")
    at.advance(10_000)
    at.beat("a")
    assert at.group.epoch == 2
    at.advance(1)
    at.beat("a")
    assert at.group.epoch == 3, "it is found"
    assert at.names(at.beat("a").assignment or ()) == ["far-0", "foo-0"]
    # Without a new topic nobody looks for ten minutes.
    resolved = at.group.resolved["f.*"]
    at.advance(40_000)
    at.beat("a")
    assert at.group.resolved["f.*"] is resolved


@pytest.mark.requirement("DP-CGH-20")
def test_expressions_are_resolved_again_after_ten_minutes() -> None:
    at = Consumers(topics=["foo:1:1"], group_consumer_regex_refresh_interval_ms=20_000)
    at.join("a", topic_regex="f.*")
    resolved = at.group.resolved["f.*"]
    at.advance(20_000)
    at.beat("a", 0, topics=[], owned=[], rebalance_timeout_ms=1)
    assert at.group.resolved["f.*"] is resolved
    at.advance(1)
    at.beat("a")
    again = at.group.resolved["f.*"]
    assert again is not resolved
    assert again.topics == resolved.topics
    assert at.group.epoch == 2, "nothing has changed"


@pytest.mark.requirement("DP-CGH-20")
def test_expressions_that_nobody_has_are_forgotten() -> None:
    at = Consumers(topics=["foo:1:1", "bar:1:1"])
    at.join("a", topic_regex="f.*")
    at.join("b", topic_regex="b.*")
    assert at.group.resolved.keys() == {"f.*"}, "the next one has to wait"
    at.advance(10_001)
    at.beat("b", 0, owned=[], topics=[], rebalance_timeout_ms=1)
    assert at.group.resolved.keys() == {"f.*", "b.*"}
    epoch = at.group.epoch
    at.beat("b", topic_regex="")
    assert at.group.resolved.keys() == {"f.*"}
    assert at.group.epoch == epoch + 1
    assert set(at.group.subscribed) == {"foo"}
    at.leave("a")
    assert at.group.resolved == {}


@pytest.mark.requirement("DP-CGH-20")
def test_names_and_an_expression_add_up() -> None:
    at = Consumers(topics=["foo:1:1", "bar:1:1"])
    at.join("a", topics=["bar"], topic_regex="f.*")
    at.beat("a")
    assert at.assigned("a") == ["bar-0", "foo-0"]


@pytest.mark.requirement("DP-CGH-20")
def test_a_long_expression_takes_no_long_time() -> None:
    at = Consumers(topics=[f"{'a' * 200}:1:1"])
    assert at.join("a", topic_regex="(a*)*b").error_code == 0
    assert math.isclose(len(at.group.resolved), 1)
    assert not re.search("b", "".join(at.group.subscribed))


# ---- time-outs -----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-CGH-26")
def test_a_member_that_does_not_revoke_in_time_is_fenced() -> None:
    at = Consumers()
    at.join("a", rebalance_timeout_ms=30_000)
    at.join("b")
    at.beat("a")
    assert at.member_state("a") == (1, "UNREVOKED")
    at.advance(20_000)
    at.beat("a")
    at.beat("b")
    at.advance(9_999)
    assert "a" in at.group.members, "heartbeats renew the session, not this time"
    at.advance(1)
    assert list(at.group.members) == ["b"]
    assert at.group.epoch == 3


@pytest.mark.requirement("DP-CGH-26")
def test_a_member_that_revokes_in_time_stays() -> None:
    at = Consumers()
    at.join("a", rebalance_timeout_ms=30_000)
    at.join("b")
    at.beat("a")
    at.advance(29_999)
    at.beat("a", owned=["foo-0", "foo-1", "foo-2"])
    at.beat("b")
    at.advance(10_000)
    assert sorted(at.group.members) == ["a", "b"]
