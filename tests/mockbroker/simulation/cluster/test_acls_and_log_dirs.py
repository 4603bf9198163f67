"""ACLs as stored state (29, 30, 31) and DescribeLogDirs (35)."""

import pytest
from msgspec.structs import replace

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.state.results import (
    AclBinding,
    AclFilter,
    CreateAclResult,
    LogDirReplica,
)

TOPIC, GROUP = 2, 3
LITERAL, PREFIXED = 3, 4
READ, WRITE = 3, 4
ALLOW = 3

EXACT = AclBinding(TOPIC, "foobar", LITERAL, "User:a", "*", READ, ALLOW)
PREFIX = AclBinding(TOPIC, "foo", PREFIXED, "User:b", "*", WRITE, ALLOW)
STAR = AclBinding(TOPIC, "*", LITERAL, "User:a", "10.0.0.1", READ, ALLOW)
OTHER = AclBinding(GROUP, "foobar", LITERAL, "User:a", "*", READ, ALLOW)


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(1)
    assert made.acls.create([EXACT, PREFIX, STAR, OTHER]) == (CreateAclResult(),) * 4
    return made


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclFilter(), {EXACT, PREFIX, STAR, OTHER}),
        (AclFilter(resource_type=TOPIC), {EXACT, PREFIX, STAR}),
        (AclFilter(resource_type=TOPIC, resource_name="foobar"), {EXACT}),
        (AclFilter(resource_name="foobar", pattern_type=2), {EXACT, PREFIX, STAR, OTHER}),
        (AclFilter(resource_name="barfoo", pattern_type=2), {STAR}),
        (AclFilter(pattern_type=PREFIXED), {PREFIX}),
        (AclFilter(resource_name="foobar", pattern_type=PREFIXED), set()),
        (AclFilter(principal="User:b"), {PREFIX}),
        (AclFilter(host="10.0.0.1"), {STAR}),
        (AclFilter(operation=WRITE), {PREFIX}),
        (AclFilter(permission_type=2), set()),
    ],
)
def test_filters(cluster: Cluster, wanted: AclFilter, found: set[AclBinding]) -> None:
    assert set(cluster.acls.describe(wanted)) == found
    (deleted,) = cluster.acls.delete([wanted])
    assert set(deleted.matching) == found
    assert set(cluster.acls.describe(AclFilter())) == {EXACT, PREFIX, STAR, OTHER} - found


def test_overlapping_filters_report_the_same_rules(cluster: Cluster) -> None:
    results = cluster.acls.delete([AclFilter(resource_type=TOPIC), AclFilter(principal="User:a")])
    assert [len(result.matching) for result in results] == [3, 3]
    assert not cluster.acls.describe(AclFilter()).bindings


def test_a_rule_twice_is_one(cluster: Cluster) -> None:
    before = len(cluster.log)
    assert cluster.acls.create([EXACT]) == (CreateAclResult(),)
    assert len(cluster.log) == before


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_type": -1}, "Invalid resourceType UNKNOWN"),
        ({"pattern_type": 9}, "Invalid patternType UNKNOWN"),
        ({"operation": 99, "principal": "a"}, "Invalid operation UNKNOWN"),
        ({"permission_type": 0}, "Invalid permissionType UNKNOWN"),
        ({"resource_name": "", "operation": 99}, "Invalid empty resource name"),
        (
            {"resource_type": 4, "operation": 99},
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        (
            {"principal": "a"},
            "Could not parse principal from `a` (no colon is present separating the principal "
            "type from the principal name)",
        ),
        ({"host": ""}, "Host pattern cannot be null or empty"),
    ],
)
def test_rules_refused(cluster: Cluster, change: dict[str, int | str], text: str) -> None:
    bad = replace(EXACT, **change)  # type: ignore[arg-type]
    good = replace(EXACT, principal="User:c")
    assert cluster.acls.create([bad, good]) == (CreateAclResult(42, text), CreateAclResult())


@pytest.mark.parametrize(
    "change",
    [{"resource_type": 1}, {"pattern_type": 1}, {"pattern_type": 2}, {"operation": 1},
     {"permission_type": 1}],
)  # fmt: skip
def test_a_filter_among_rules_fails_all(cluster: Cluster, change: dict[str, int]) -> None:
    bad = replace(EXACT, resource_name="", **change)  # type: ignore[arg-type]
    good = replace(EXACT, principal="User:c")
    assert cluster.acls.create([good, bad]) == (CreateAclResult(-1), CreateAclResult(-1))
    assert good not in cluster.acls


def test_filters_refused(cluster: Cluster) -> None:
    results = cluster.acls.delete([AclFilter(pattern_type=9), AclFilter(operation=0)])
    assert [(r.error_code, r.error_message) for r in results] == [
        (42, "Unknown patternFilter."),
        (42, "Unknown entryFilter."),
    ]
    for unknown in ("resource_type", "pattern_type", "operation", "permission_type"):
        found = cluster.acls.describe(AclFilter(**{unknown: 99}))
        assert (found.error_code, found.bindings) == (0, ())
    assert len(cluster.acls.describe(AclFilter()).bindings) == 4


def test_log_dirs_hold_what_the_broker_replicates() -> None:
    cluster = Cluster(3, topics=["foo=1,2/2,3", "bar=3", "baz=2"])
    (log_dir,) = cluster.log_dirs.describe(2, None)
    assert log_dir.error_code == 0
    assert log_dir.topics == (
        ("baz", (LogDirReplica(0),)),
        ("foo", (LogDirReplica(0), LogDirReplica(1))),
    )
    (some,) = cluster.log_dirs.describe(2, [("foo", [1, 7]), ("bar", [0]), ("nosuch", [0])])
    assert some.topics == (("foo", (LogDirReplica(1),)),)
    # A replica being added is there before it is in sync.
    cluster.reassignments.alter([("bar", [(0, [2])])])
    assert cluster.log_dirs.describe(2, [("bar", [0])])[0].topics
