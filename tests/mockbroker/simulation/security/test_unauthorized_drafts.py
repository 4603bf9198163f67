"""Drafts, asked by one who may not and by one who may: as their pages have it."""

from typing import Any

import pytest

from mockbroker.profiles import profile as profile_named
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.security.authorizer import AclOperation
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.security.enforced import (
    FOO_0_1,
    allow,
    as_alice,
    ask,
    new_cluster,
    on_topic,
)


@pytest.fixture
def cluster() -> Cluster:
    return new_cluster()


@pytest.mark.requirement("K455-21", "K455-22")
@pytest.mark.parametrize("profile", ["kip-455-old", "kip-455-new"])
@pytest.mark.parametrize(("topics", "entries"), [(FOO_0_1, 2), ([], 1), (None, 1)])
def test_alter_reassignments_of_the_drafts(cluster, profile, topics, entries):
    asked = as_alice(cluster, profile)
    request: Any = asked.codec.apis[45].request
    before = len(cluster.log)
    body = {"timeoutMs": 1000, "topics": topics}
    answer = asked.ask(request.from_json(body, 0), 0)
    assert [row.error_code for row in answer.responses] == [31] * entries
    assert len(cluster.log) == before


@pytest.mark.requirement("K455-24", "K455-25")
@pytest.mark.parametrize("profile", ["kip-455-old", "kip-455-new"])
def test_list_reassignments_of_the_drafts_answers_the_error_alone(profile: str) -> None:
    cluster = simulated_cluster(4, topics=["foo=1,2,3/2,3,4"], reassignment=profile)
    cluster.reassignments.alter([("foo", [(0, [2, 3, 4])])])
    asked = as_alice(cluster, profile)
    request: Any = asked.codec.apis[46].request
    for topics in ([{"partitionIds": [0]}], None):
        answer = asked.ask(request.from_json({"timeoutMs": 1000, "topics": topics}, 0), 0)
        assert (answer.error_code, answer.topics) == (31, [])
    allow(cluster, AclOperation.DESCRIBE)
    assert asked.ask(request.from_json({"timeoutMs": 1000, "topics": None}, 0), 0).topics


@pytest.mark.requirement("K183-07", "K183-10", "A-28")
def test_elect_preferred_leaders_of_kip_183(cluster: Cluster) -> None:
    asked = as_alice(cluster, "kip-183")
    kind = asked.codec.apis[43].request
    on_topic(cluster, AclOperation.ALTER, "foo")
    before = len(cluster.log)
    wanted = [{"topic": "foo", "partitionId": [0, 5]}]
    (topic,) = ask(asked, kind, 0, topicPartitions=wanted)["replicaElectionResults"]
    assert [row["errorCode"] for row in topic["partitionResult"]] == [31, 31]
    assert ask(asked, kind, 0, topicPartitions=None)["replicaElectionResults"] == []
    assert len(cluster.log) == before


@pytest.mark.requirement("K240-01", "K240-07")
@pytest.mark.parametrize("key", [32240, 32241])
def test_the_requests_of_kip_240_need_describe_on_the_cluster(key: int) -> None:
    reassignment = profile_named("kip-240").reassignment
    cluster = simulated_cluster(4, topics=["foo=1,2,3/2,3,4"], reassignment=reassignment)
    cluster.reassignments.alter([("foo", [(0, [2, 3, 4])])])
    asked = as_alice(cluster, "kip-240")
    kind = asked.codec.apis[key].request
    field = "topicPartitions" if key == 32240 else "topicReassignments"
    found = "reassignments" if key == 32240 else "descriptions"
    answer = ask(asked, kind, 0, **{field: None})
    assert (answer["errorCode"], answer[found]) == (31, [])
    assert "needs DESCRIBE permission" in answer["errorMessage"]
    allow(cluster, AclOperation.DESCRIBE)
    answer = ask(asked, kind, 0, **{field: None})
    assert answer["errorCode"] == 0
    assert len(answer[found]) == 1
