"""The rules that heartbeats of consumer, share and streams groups share."""

from typing import Any, Final, TypeAlias

import pytest

from kproto.error_codes import ErrorCode
from tests.mockbroker.simulation.groups.consumers import Consumers
from tests.mockbroker.simulation.groups.modern_members import refused
from tests.mockbroker.simulation.groups.sharers import Sharers
from tests.mockbroker.simulation.groups.streams import Streams

Kind: TypeAlias = Any
"""A subclass of ``ModernMembers``."""
KINDS: Final[dict[str, Kind]] = {"CGH": Consumers, "STREAMS": Streams, "SHARE": Sharers}
MISSING, UNKNOWN = ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID
FENCED = ErrorCode.FENCED_MEMBER_EPOCH


def each_kind(**requirements: str) -> Any:
    """Run a test for each kind of groups: the numbers of its requirements, by prefix."""
    return pytest.mark.parametrize(
        "kind",
        [
            pytest.param(
                KINDS[prefix],
                marks=pytest.mark.requirement(*(f"DP-{prefix}-{each}" for each in numbers.split())),
                id=prefix.lower(),
            )
            for prefix, numbers in requirements.items()
        ],
    )


# ---- the group -----------------------------------------------------------------------------------


@each_kind(CGH="10 11", STREAMS="09", SHARE="21")
def test_only_a_member_that_joins_at_the_coordinator_makes_a_group(kind: Kind) -> None:
    at = kind()
    name = at.group_type
    assert refused(at.beat("a", 1)) == (MISSING, f"{name.capitalize()} group g not found.")
    assert refused(at.leave()) == (MISSING, "Group g not found.")
    assert refused(at.join(error=ErrorCode.NOT_COORDINATOR)) == (ErrorCode.NOT_COORDINATOR, None)
    # The request itself is checked before.
    assert at.join(" ", error=ErrorCode.NOT_COORDINATOR).error_code == ErrorCode.INVALID_REQUEST
    assert at.state == "none"
    assert at.join().error_code == 0
    assert at.state == "Stable"


@each_kind(CGH="11", STREAMS="09", SHARE="21")
def test_an_id_belongs_to_one_kind_of_group(kind: Kind) -> None:
    for other in KINDS.values():
        at, owner = kind((4, 4)), other((4, 4))
        if kind is other:
            continue
        at.cluster = owner.cluster
        at.groups = getattr(at.cluster.groups, at.group_type)
        owner.join()
        problem = (MISSING, f"Group g is not a {at.group_type} group.")
        for result in (at.join(), at.beat("a", 1), at.leave()):
            assert refused(result) == problem
        owner.leave()
        assert refused(at.join()) == problem, "though it is empty"


@pytest.mark.parametrize(("release", "first"), [((4, 2), 1), ((4, 3), 2), ((4, 4), 2)])
@each_kind(CGH="29", SHARE="22")
def test_the_epoch_of_a_new_group(kind: Kind, release: tuple[int, int], first: int) -> None:
    at = kind(release)
    assert at.join("a").member_epoch == first
    assert (at.group.epoch, at.group.target_epoch, at.state) == (first, first, "Stable")
    assert at.join("b").member_epoch == first + 1


# ---- the member ----------------------------------------------------------------------------------


@each_kind(CGH="12", STREAMS="10", SHARE="23")
def test_a_full_group_takes_no_more_members(kind: Kind) -> None:
    at = kind((4, 4), **{f"group_{kind.group_type}_max_size": 2})
    at.join("a")
    at.join("b")
    text = f"The {at.group_type} group has reached its maximum capacity of 2 members."
    assert refused(at.join("c")) == (ErrorCode.GROUP_MAX_SIZE_REACHED, text)
    assert refused(at.leave("c")) == (UNKNOWN, "Member c is not a member of group g.")
    assert at.beat("a").error_code == 0
    assert at.join("a").error_code == 0, "it is a member already"
    at.leave("b")
    assert at.join("c").error_code == 0


@each_kind(CGH="13 17", STREAMS="10 12", SHARE="24")
def test_members_are_known(kind: Kind) -> None:
    at = kind()
    at.join("a")
    unknown = (UNKNOWN, "Member b is not a member of group g.")
    assert refused(at.beat("b", 1)) == unknown
    assert refused(at.leave("b")) == unknown
    assert list(at.group.members) == ["a"]
    gone = at.leave("a")
    assert (gone.error_code, gone.member_id, gone.member_epoch) == (0, "a", -1)
    assert (gone.interval_ms, gone.assignment, at.state) == (0, None, "Empty")


@each_kind(CGH="14", STREAMS="16")
def test_an_instance_id_has_one_member(kind: Kind) -> None:
    at = kind((4, 4))
    at.join("a", instance_id="one")
    at.join("d")
    in_use = (
        ErrorCode.UNRELEASED_INSTANCE_ID,
        "Static member b with instance id one cannot join the group because the instance id is "
        "owned by a member.",
    )
    assert refused(at.join("b", instance_id="one")) == in_use
    fenced = "Static member b with instance id one was fenced by member a."
    for epoch in (1, -1, -2):
        result = at.beat("b", epoch, instance_id="one")
        assert refused(result) == (ErrorCode.FENCED_INSTANCE_ID, fenced)
        result = at.beat("a", epoch, instance_id="two")
        assert refused(result) == (UNKNOWN, "Instance id two is unknown.")
    # Even its own member id does not help, as long as the member has not left.
    assert at.join("a", instance_id="one").error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert at.beat("a", instance_id="one").error_code == 0
    assert at.join("b", instance_id="two").error_code == 0
    assert at.group.instances == {"one": "a", "two": "b"}
    assert at.leave("a", instance_id="one").member_epoch == -1
    assert at.join("c", instance_id="one").error_code == 0, "it has left for good"


@each_kind(CGH="15 16", STREAMS="10", SHARE="25")
def test_members_have_the_epoch_of_the_coordinator(kind: Kind) -> None:
    at = kind((4, 4))
    at.join("a")
    for _ in range(2):
        at.groups.force_rebalance("g")
        at.beat("a")
    epoch = at.group.members["a"].epoch
    text = (
        f"The {at.group_type} group member has a {{}} member epoch ({{}}) than the one known by "
        f"the group coordinator ({epoch}){{}}. The member must abandon all its partitions and "
        "rejoin."
    )
    previous = ""
    if kind is Sharers:
        previous = f", and it does not match the previous member epoch ({epoch - 1})"
    assert refused(at.beat("a", epoch + 1)) == (FENCED, text.format("greater", epoch + 1, ""))
    assert refused(at.beat("a", epoch - 2)) == (
        FENCED, text.format("smaller", epoch - 2, previous),
    )  # fmt: skip
    assert at.join("a").error_code == 0, "a fenced member joins again"
    assert at.leave("a").error_code == 0, "the epoch of a leaver does not matter"


@each_kind(CGH="25", STREAMS="12", SHARE="01")
def test_each_heartbeat_renews_the_session(kind: Kind) -> None:
    at = kind()
    at.join("a")
    for _ in range(3):
        at.advance(44_999)
        assert at.beat("a").error_code == 0
    at.advance(44_999)
    assert at.beat("a", 9).error_code == FENCED, "a refused one does not"
    at.advance(1)
    assert at.state == "Empty"


# ---- targets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("release", "settled"), [((4, 3), False), ((4, 4), True)])
@each_kind(CGH="17", STREAMS="12", SHARE="22 26")
def test_an_empty_group_needs_no_target_since_4_4(kind, release, settled):
    at = kind(release)
    at.join("a")
    at.join("b")
    epoch = at.group.epoch
    at.leave("a")
    assert (at.group.epoch, at.group.target_epoch) == (epoch + 1, epoch)
    at.leave("b")
    assert (at.group.epoch, at.state) == (epoch + 2, "Empty")
    assert (at.group.target_epoch == at.group.epoch) is settled


@pytest.mark.parametrize("release", [(4, 2), (4, 3)])
@each_kind(CGH="22", STREAMS="12", SHARE="28")
def test_targets_keep_a_distance_since_4_3(kind: Kind, release: tuple[int, int]) -> None:
    name = f"group_{kind.group_type}_assignment_interval_ms"
    at = kind(release, **({} if release < (4, 3) else {name: 1000}))
    at.advance(5)
    at.join("a")
    first = at.group.target_epoch
    assert first == at.group.epoch, "the first one comes at once"
    at.join("b")
    if release < (4, 3):
        assert at.group.target_epoch == at.group.epoch
        return
    assert (at.group.epoch > first, at.group.target_epoch) == (True, first)
    at.advance(999)
    at.beat("a")
    assert at.group.target_epoch == first
    at.advance(1)
    at.beat("a")
    assert at.group.target_epoch == at.group.epoch


@each_kind(CGH="22", STREAMS="12", SHARE="28")
def test_a_group_may_set_the_distance_for_itself(kind: Kind) -> None:
    at = kind((4, 4), **{f"group_{kind.group_type}_assignment_interval_ms": 1000})
    name = f"{at.group_type}.assignment.interval.ms"
    at.cluster.config_changes.alter_incrementally([(32, "g", [(name, 0, "0")])])
    at.advance(5)
    at.join("a")
    at.join("b")
    assert at.group.target_epoch == at.group.epoch
