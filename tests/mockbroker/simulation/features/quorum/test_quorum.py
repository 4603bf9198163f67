"""The voters of the metadata quorum, and unregistered brokers and controllers."""

import uuid
from collections.abc import Sequence

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.simulation.features.feature_updates import FeatureUpdate
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.security.authorizer import Authorizer
from mockbroker.simulation.security.policy import OPEN, Security
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.support.requests import request_of

DIRECTORY = uuid.UUID(int=7)
TEXT = "AAAAAAAAAAAAAAAAAAAABw"
NOWHERE = uuid.UUID(int=0)
HERE = (("CONTROLLER", "host-9", 9009),)


def broker(security: Security = OPEN, release: tuple[int, int] = (4, 4)) -> DirectBroker:
    cluster = simulated_cluster(
        3, cluster_id="cluster", topics=["foo=2,3", "bar=2"], release=release
    )
    return DirectBroker(cluster, profile_name=f"kafka-{release[0]}.{release[1]}", security=security)


def add(
    at: DirectBroker,
    voter_id: int = 9,
    directory: uuid.UUID = DIRECTORY,
    listeners: Sequence[tuple[str, str, int]] = HERE,
    cluster_id: str | None = None,
) -> tuple[int, str | None]:
    answer = at.ask(
        "AddRaftVoter",
        0,
        cluster_id=cluster_id,
        voter_id=voter_id,
        voter_directory_id=directory,
        listeners=[{"name": name, "host": host, "port": port} for name, host, port in listeners],
    )
    return answer.error_code, answer.error_message


def remove(
    at: DirectBroker,
    voter_id: int = 9,
    directory: uuid.UUID = DIRECTORY,
    cluster_id: str | None = None,
) -> tuple[int, str | None]:
    answer = at.ask(
        "RemoveRaftVoter", 0, cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory
    )
    return answer.error_code, answer.error_message


@pytest.mark.requirement("QUORUM-01")
def test_the_cluster_id_comes_first() -> None:
    refused = (
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        'The given id "other" doesn\'t match the cluster id "cluster"',
    )
    assert add(broker(), -1, cluster_id="other") == refused
    assert remove(broker(), -1, cluster_id="other") == refused
    assert add(broker(), cluster_id="cluster") == (0, None)


@pytest.mark.requirement("QUORUM-02")
@pytest.mark.parametrize(("voter_id", "directory"), [(-1, DIRECTORY), (9, NOWHERE)])
def test_a_voter_has_an_id_and_a_directory(voter_id: int, directory: uuid.UUID) -> None:
    text = "request didn't include a valid voter"
    refused = ErrorCode.INVALID_REQUEST
    assert add(broker(), voter_id, directory, ()) == (refused, f"Add voter {text}")
    assert remove(broker(), voter_id, directory) == (refused, f"Remove voter {text}")


@pytest.mark.requirement("QUORUM-03")
def test_a_new_voter_listens_where_controllers_do() -> None:
    text = (
        "Add voter request didn't include the endpoint "
        "(Endpoints(endpoints={ListenerName(OTHER)=host/<unresolved>:1})) for the default listener "
        "ListenerName(CONTROLLER)"
    )
    old = broker(release=(3, 9))
    for at in (broker(), old):
        assert add(at, 1, listeners=[("OTHER", "host", 1)]) == (ErrorCode.INVALID_REQUEST, text)


@pytest.mark.requirement("QUORUM-04")
def test_voters_change_only_with_the_feature() -> None:
    at = broker(release=(3, 9))
    text = "Cluster doesn't support {} voter because the kraft.version feature is 0"
    refused = ErrorCode.UNSUPPORTED_VERSION
    assert add(at, 1) == (refused, text.format("adding"))
    assert remove(at, 1) == (refused, text.format("removing"))
    at.cluster.features.update([FeatureUpdate("kraft.version", 1)])
    assert add(at) == (0, None)


@pytest.mark.requirement("QUORUM-05")
def test_a_voter_is_added_once() -> None:
    at = broker()
    assert add(at) == (0, None)
    code, text = add(at, 1)
    (leader, _) = at.cluster.quorum.voters
    assert code == ErrorCode.DUPLICATE_VOTER
    assert text is not None
    assert text.startswith(
        f"The voter id for ReplicaKey(id=1, directoryId={TEXT}) is already part of the set of "
        "voters [ReplicaKey(id=1, directoryId="
    )
    assert text.endswith(f", ReplicaKey(id=9, directoryId={TEXT})].")
    assert leader.directory_id != NOWHERE
    assert add(at, 9, uuid.UUID(int=8))[0] == ErrorCode.DUPLICATE_VOTER


@pytest.mark.requirement("QUORUM-06")
def test_a_voter_is_removed_by_id_and_directory() -> None:
    at = broker()
    (leader,) = at.cluster.quorum.voters
    missing = ErrorCode.VOTER_NOT_FOUND
    assert remove(at, 1, leader.directory_id)[0] == missing, "the last voter"
    add(at)
    code, text = remove(at, 9, uuid.UUID(int=8))
    assert code == missing
    assert text is not None
    assert text.startswith(
        "Cannot remove voter ReplicaKey(id=9, directoryId=AAAAAAAAAAAAAAAAAAAACA"
    )
    assert remove(at, 8)[0] == missing
    assert remove(at) == (0, None)
    assert at.cluster.quorum.voters == (leader,)
    cluster = at.cluster
    assert replay(cluster.state.cluster_id, cluster.log).voters == (leader,)


@pytest.mark.requirement("QUORUM-07")
def test_the_quorum_has_the_added_voters() -> None:
    at = broker()
    add(at)
    topic = {"topic_name": "__cluster_metadata", "partitions": {}}
    answer = at.ask("DescribeQuorum", 2, topics=[topic])
    partition = answer.topics[0].partitions[0]
    (leader, _) = at.cluster.quorum.voters
    assert [(each.replica_id, each.replica_directory_id) for each in partition.current_voters] == [
        (1, leader.directory_id), (9, DIRECTORY),
    ]  # fmt: skip
    assert [each.replica_id for each in partition.observers] == [2, 3]
    listeners = {each.node_id: each.listeners for each in answer.nodes}
    assert [(each.name, each.host, each.port) for each in listeners[9]] == list(HERE)
    assert list(listeners) == [1, 9]
    add(at, 2)
    partition = at.ask("DescribeQuorum", 1, topics=[topic]).topics[0].partitions[0]
    assert [each.replica_id for each in partition.observers] == [3]


def unregister(at: DirectBroker, broker_id: int) -> tuple[int, str | None]:
    answer = at.ask(request_of("UnregisterBroker", broker_id=broker_id), 0)
    return answer.error_code, answer.error_message


@pytest.mark.requirement("QUORUM-08")
def test_an_unknown_broker_cannot_be_unregistered() -> None:
    unknown = ErrorCode.BROKER_ID_NOT_REGISTERED
    assert unregister(broker(release=(4, 0)), 9) == (unknown, "")
    text = "Broker ID 9 is not currently registered"
    assert unregister(broker(release=(4, 1)), 9) == (unknown, text)


@pytest.mark.requirement("QUORUM-08")
def test_an_unregistered_broker_is_gone_until_it_restarts() -> None:
    at = broker()
    cluster = at.cluster
    assert unregister(at, 2) == (0, "")
    assert unregister(at, 2)[0] == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert cluster.topics.partition("foo", 0).isr == (3,)
    assert cluster.topics.partition("bar", 0).leader == -1
    shown = at.ask("Metadata", 9, topics=[]).brokers
    assert [each.node_id for each in shown] == [1, 3]
    shown = at.ask("DescribeCluster", 2, include_fenced_brokers=True).brokers
    assert [each.broker_id for each in shown] == [1, 3]
    topic = {
        "name": "new",
        "num_partitions": -1,
        "replication_factor": -1,
        "partition_index": 0,
        "broker_ids": [2],
    }
    (result,) = at.ask("CreateTopics", 7, topics=[topic]).topics
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    topic = {"name": "new", "num_partitions": 1, "replication_factor": 3}
    (result,) = at.ask("CreateTopics", 7, topics=[topic]).topics
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    Operations(cluster).start_broker(2)
    assert cluster.topics.partition("bar", 0).leader == 2
    assert unregister(at, 2) == (0, "")


@pytest.mark.requirement("QUORUM-08")
def test_a_stopped_broker_is_no_longer_fenced_but_unknown() -> None:
    at = broker()
    Operations(at.cluster).stop_broker(3)
    fenced = request_of("DescribeCluster", include_fenced_brokers=True)
    assert [each.broker_id for each in at.ask(fenced, 2).brokers] == [1, 2, 3]
    assert unregister(at, 3) == (0, "")
    assert [each.broker_id for each in at.ask(fenced, 2).brokers] == [1, 2]


@pytest.mark.requirement("QUORUM-09")
def test_unregistering_controllers() -> None:
    at = broker()

    def ask(controller_id: int) -> tuple[int, str | None]:
        answer = at.ask("UnregisterController", 0, controller_id=controller_id)
        return answer.error_code, answer.error_message

    itself = "Controller cannot unregister itself while it is active."
    assert ask(1) == (ErrorCode.INVALID_REQUEST, itself)
    unknown = "Controller ID 9 is not currently registered."
    assert ask(9) == (ErrorCode.CONTROLLER_ID_NOT_REGISTERED, unknown)
    add(at)
    assert ask(9) == (0, "")


@pytest.mark.requirement("QUORUM-09")
def test_unregistering_controllers_needs_a_level() -> None:
    cluster = simulated_cluster(1, release=(4, 3))
    code, text = cluster.quorum.unregister_controller(9)
    assert (code, text) == (
        ErrorCode.UNSUPPORTED_VERSION,
        "The current MetadataVersion is too old to support controller unregistration.",
    )
    assert cluster.quorum.unregister_controller(1)[0] == ErrorCode.INVALID_REQUEST


def test_the_quorum_needs_the_right_to_alter_the_cluster() -> None:
    at = broker(Security(authorizer=Authorizer(frozenset())))
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert add(at)[0] == remove(at)[0] == unregister(at, 2)[0] == refused
    assert at.ask("UnregisterController", 0, controller_id=9).error_code == refused
