"""Each fix of Kafka, on clusters that have it and on clusters that lack it.

A case is one thing that a client, or a tester, sees of a cluster. It differs by the fix, whatever
the release, and between the releases before and after the fix.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import pytest
from _pytest.mark.structures import ParameterSet

from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    MetadataRequest,
    TxnOffsetCommitRequest,
)
from mockbroker.options import ClusterOptions
from mockbroker.profiles import Profile, profile, with_fixes
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.groups.classic.classic_group import GroupState
from mockbroker.simulation.groups.streams.topology import InternalTopic, Subtopology, Topology
from mockbroker.simulation.log.producing.producer_states import (
    ROWS,
    Guard,
    ProducerBatch,
    SequenceCheck,
)
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.releases.fixes import FIXES
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release
from mockbroker.simulation.security.authorizer import (
    ANONYMOUS,
    CLUSTER_NAME,
    AclOperation,
    Authorizer,
)
from mockbroker.simulation.security.policy import Security
from mockbroker.simulation.security.scram_credentials import CredentialChange
from mockbroker.simulation.state.results import AclBinding
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.clients.quotas import test_mutations as mutations
from tests.mockbroker.simulation.coordinators import test_offset_store as offsets
from tests.mockbroker.simulation.fetching.fetching import FOO, append, ask, begin, request, row
from tests.mockbroker.simulation.fetching.test_replicas import racks
from tests.mockbroker.simulation.fetching.test_sessions import Client
from tests.mockbroker.simulation.groups.consumers import Consumers
from tests.mockbroker.simulation.groups.members import Coordinator
from tests.mockbroker.simulation.groups.streams import Streams
from tests.mockbroker.simulation.groups.test_mixed_groups import Mixed
from tests.mockbroker.simulation.log import test_idempotence as idempotence
from tests.mockbroker.simulation.log.producing import new_cluster
from tests.mockbroker.simulation.transactions.transacting import (
    KIND,
    Producer,
    coordinator,
    markers,
)

See = Callable[[Profile], Any]
BAR = ("bar", 0)
BOTH = (("range", b"r"), ("sticky", b"s"))


def simulated(of: Profile, brokers: Any = 3, *topics: str, **options: Any) -> Cluster:
    return simulated_cluster(
        brokers,
        topics=topics,
        release=of.software,
        reassignment=of.reassignment,
        elections=of.elections,
        **options,
    )


def broker(of: Profile, *topics: str, **options: Any) -> DirectBroker:
    return DirectBroker(simulated(of, 3, *topics, **options), profile_name=of)


# ---- groups --------------------------------------------------------------------------------------


def beat_without_a_group_id(of: Profile) -> int:
    return Coordinator(of.software).beat("m", 1, group="")


def a_new_member_waits_for_five_minutes(of: Profile) -> bool:
    at = Coordinator(of.software)
    (a,) = at.stable("a")
    member = at.group.members[a]
    member.session_timeout_ms = member.rebalance_timeout_ms = 900_000
    at.groups.machine.renew(member)
    answer = at.join(name="new")
    at.advance(300_000)
    return bool(answer.results)


def sync_with_a_dead_group(of: Profile) -> int:
    at = Coordinator(of.software)
    (a,) = at.stable("a")
    at.group.state = GroupState.DEAD
    return at.sync(a).code


def a_static_member_returns_before_the_assignment(of: Profile) -> str:
    at = Coordinator(of.software)
    at.completing(instances=("i", "j"))
    at.join(instance="j")
    return at.state


def join_a_group_above_its_limit(of: Profile) -> int:
    at = Coordinator(of.software, group_max_size=3)
    a, *_ = at.preparing("a", "b", "c")
    at.limit_to(2)
    answer = at.join(a)
    return 0 if answer.waits else answer.code


def a_static_member_changes_the_protocol(of: Profile) -> int:
    at = Coordinator(of.software)
    member = at.join(instance="i", protocols=BOTH).result.member_id
    at.sync(member, {member: b"1"})
    return at.join(instance="i", protocols=tuple(reversed(BOTH))).result.generation


def members_that_do_not_sync(of: Profile) -> str:
    at = Coordinator(of.software)
    _, b = at.completing("a", "b")
    at.sync(b)
    for member in at.group.members.values():
        member.session_timeout_ms = 120_000
        at.groups.machine.renew(member)
    at.advance(60_000)
    return at.state


def a_new_member_that_never_syncs(of: Profile) -> list[str]:
    states = []
    for session in (10_000, 299_999, 300_000):
        at = Coordinator(of.software)
        at.join(session=session, rebalance=900_000)
        at.advance(session)
        states.append(at.state)
    return states


def offsets_during_a_rebalance(of: Profile) -> int | None:
    cluster = offsets.coordinated(release=of.software)
    groups = cluster.offsets.groups = offsets.Groups(cluster.groups)
    groups.present, groups.subscribed = offsets.REBALANCING, ("bar",)
    offsets.commit(cluster, offsets.FOO_0)
    return offsets.lifetime(cluster)


def a_member_brings_another_time_out(of: Profile) -> int:
    at = Coordinator(of.software)
    _, b = at.preparing("a", "b")
    at.join(b, rebalance=90_000)
    return at.group.members[b].rebalance_timeout_ms


def consumers(of: Profile, topics: list[str] | None = None, **configs: Any) -> Consumers:
    software = of.software
    return Consumers(software.number[:2], topics or ["foo:6:1"], fixes=software.fixes, **configs)


def join_again_with_epoch_0(of: Profile) -> int:
    at = consumers(of)
    for member in ("a", "b", "c"):
        at.join(member)
    at.settle()
    return at.join("a").error_code


def unsubscribe(of: Profile) -> list[str]:
    at = consumers(of, ["foo:1:1", "bar:1:1"])
    at.join("a", topics=["foo", "bar"])
    at.groups.set_target("g", {"a": [("foo", 0), ("bar", 0)]})
    at.settle()
    at.beat("a", topics=["foo"])
    return at.assigned("a")


def a_static_member_returns_to_a_full_group(of: Profile) -> int:
    at = consumers(of, group_consumer_max_size=1)
    at.join("a", instance_id="i")
    at.leave("a", -2, instance_id="i")
    return at.join("b", instance_id="i").error_code


def join_with_an_unreadable_subscription(of: Profile) -> int:
    at = Mixed(of.software.number[:2], ["foo:6:1"], fixes=of.software.fixes)
    at.join("a")
    return at.classic_join(protocols=(("range", b"meta"),)).code


def a_standby_of_two_members(of: Profile) -> list[str]:
    """One of them runs the task once the member that ran it has left, and another has come."""
    topology = Topology(0, (Subtopology("0", ("foo",), changelogs=(InternalTopic("log"),)),))
    number, fixes = of.software.number[:2], of.software.fixes
    at = Streams(number, ("foo:1:1", "log:1:1"), topology, fixes=fixes)
    for standbys in (2, 1):
        changes = [("streams.num.standby.replicas", 0, str(standbys))]
        at.cluster.config_changes.alter_incrementally([(32, "g", changes)])
        if standbys == 2:
            for member in ("a", "b", "c"):
                at.join(member)
                at.settle()
    at.beat("a", -1)
    at.join("d")
    return [name for name, tasks in at.group.target.items() if tasks.standby]


# ---- produce and transactions --------------------------------------------------------------------


def an_unknown_producer(of: Profile) -> int:
    return idempotence.send(new_cluster(of.software), 8)[0]


def a_producer_known_by_its_marker(of: Profile) -> int:
    cluster = new_cluster(of.software)
    idempotence.mark(cluster, epoch=1)
    return idempotence.send(cluster, 8, epoch=1)[0]


def a_producer_whose_batches_are_gone(of: Profile) -> int:
    cluster = new_cluster(of.software)
    idempotence.send(cluster, 0)
    cluster.logs.advance_start("delete_records", idempotence.FOO, 1)
    return idempotence.send(cluster, 1)[0]


def an_unknown_producer_of_version_2(of: Profile) -> int:
    guard = Guard(8, 0, True, idempotence.NOW_MS)
    unknown = ProducerBatch(None, 0, 8, 8, is_transactional=True, guard=guard)
    check = SequenceCheck(unknown)
    apply_first(rows_of_release(ROWS, of.software), unknown.form, check)
    return int(check.code)


def a_producer_that_comes_back(of: Profile) -> tuple[int, int]:
    """The epoch of the marker, and the one that the producer gets."""
    cluster = coordinator(of.software)
    old = Producer(cluster).begun()
    Producer(cluster).init()
    ((_, _, aborted, _),) = markers(cluster)
    return aborted, old.init().epoch


def end_with_a_newer_epoch(of: Profile) -> list[object]:
    producer = Producer(coordinator(of.software))
    producer.init()
    producer.add()
    return [producer.end(epoch=producer.epoch + 1), producer.state, producer.end()]


def commit_while_the_coordinator_loads(of: Profile) -> int:
    cluster = coordinator(of.software)
    Operations(cluster).load_coordinator("group", "g")
    body = TxnOffsetCommitRequest.from_json(
        {
            "transactionalId": "t", "groupId": "g", "producerId": 1000, "producerEpoch": 0,
            "topics": [
                {"name": "foo", "partitions": [
                    {"partitionIndex": 0, "committedOffset": 1, "committedMetadata": ""}
                ]}
            ],
        }, 1,
    )  # fmt: skip
    answer = DirectBroker(cluster, profile_name=of).ask(body, 1)
    return int(answer.topics[0].partitions[0].error_code)


def fences_that_fail(of: Profile) -> int:
    configs = {"transaction.state.log.min.isr": "2"}
    cluster = coordinator(of.software, brokers=2, broker_configs=configs)
    producer = Producer(cluster)
    producer.init()
    producer.add()
    Operations(cluster).leave_isr(cluster.coordinators.partition_of(KIND, "t"), 3 - producer.at)
    assert [producer.init().code for _ in range(2)] == [15, 15]
    return producer.transaction.metadata.epoch


# ---- fetching ------------------------------------------------------------------------------------


def turns_of_partitions(of: Profile) -> list[tuple[str, int]]:
    client = Client(simulated(of, 1, "foo=1/1/1", "bar=1"))
    append(client.cluster, b"1")
    client.ask({FOO: 0, BAR: 0})
    append(client.cluster, b"1", tp=BAR)
    client.listed({}, max_bytes=1)
    return client.listed({}, max_bytes=1)


def fetch_below_the_log_with_a_lost_epoch(of: Profile) -> int:
    cluster = simulated(of, 2, "foo=1,2")
    append(cluster, b"a")
    append(cluster, b"b")
    Operations(cluster).leave_isr(FOO, 2)
    append(cluster, b"lost")
    Operations(cluster).stop_broker(1)
    cluster.elections.elect(1, [("foo", [0])])
    append(cluster, b"c")
    cluster.logs.advance_start("test", FOO, 1)
    at = DirectBroker(cluster)
    between = cluster.topics.partition(*FOO).leader_epoch - 1
    position = {"fetch_offset": 0, "last_fetched_epoch": between}
    return int(row(ask(at, {FOO: position}, 12, broker_id=2)).error_code)


def a_fetch_that_is_redirected(of: Profile) -> bool:
    cluster = racks(release=of.software)
    append(cluster, b"a")
    body = request({FOO: 0}, rack_id="z", max_wait_ms=3_600_000, min_bytes=1)
    outcome = begin(DirectBroker(cluster), body, 11)
    if isinstance(outcome, Awaitable):
        outcome.close()  # type: ignore[attr-defined]
        return False
    return True


def a_follower_that_is_no_replica(of: Profile) -> int:
    cluster = simulated(of, 3, "foo=1,2")
    return int(row(ask(DirectBroker(cluster), {FOO: 0}, 12, replica_id=3)).error_code)


def a_preferred_replica_out_of_sync(of: Profile) -> int:
    cluster = racks(release=of.software)
    append(cluster, b"a")
    Operations(cluster).leave_isr(FOO, 4)
    answer = ask(DirectBroker(cluster), {FOO: 0}, 11, rack_id="z", max_wait_ms=0)
    return int(row(answer).preferred_read_replica)


def the_watermark_of_a_small_isr(of: Profile) -> int:
    cluster = simulated(of, 2, "foo=1,2")
    cluster.config_changes.alter_incrementally([(2, "foo", [("min.insync.replicas", 0, "2")])])
    Operations(cluster).leave_isr(FOO, 2)
    append(cluster, b"a")
    return cluster.logs.log(FOO).high_watermark


# ---- administration ------------------------------------------------------------------------------


def create(of: Profile, name: str = "new", timeout_ms: int = 1000, **row: Any) -> tuple[int, Any]:
    topic = {"name": name, "numPartitions": 1, "replicationFactor": 1, "assignments": [],
             "configs": [], **row}  # fmt: skip
    body = CreateTopicsRequest.from_json(
        {"topics": [topic], "timeoutMs": timeout_ms, "validateOnly": True}, 2
    )
    (result,) = broker(of, "foo=1").ask(body, 2).topics
    return result.error_code, result.error_message


def create_what_exists_with_too_many_replicas(of: Profile) -> int:
    return create(of, "foo", replicationFactor=9)[0]


def grow_during_another_reassignment(of: Profile) -> int:
    at = broker(of, "foo=1", "bar=1")
    at.cluster.reassignments.alter([("foo", [(0, [2])])])
    assert at.cluster.topics.partition("foo", 0).reassigning
    row = {"name": "bar", "count": 2, "assignments": None}
    body = CreatePartitionsRequest.from_json(
        {"topics": [row], "timeoutMs": 1000, "validateOnly": True}, 1
    )
    return int(at.ask(body, 1).results[0].error_code)


def move_to_no_replica(of: Profile) -> str | None:
    partitions = [{"partitionIndex": 0, "replicas": []}]
    body = AlterPartitionReassignmentsRequest.from_json(
        {"timeoutMs": 1000, "topics": [{"name": "foo", "partitions": partitions}]}, 0
    )
    (topic,) = broker(of, "foo=1").ask(body, 0).responses
    text: str | None = topic.partitions[0].error_message
    return text


def alter_configs(of: Profile, topic: str, name: str, how: int, value: str) -> int:
    cluster = simulated(of, 3, "foo=1")
    return int(
        cluster.config_changes.alter_incrementally([(2, topic, [(name, how, value)])])[0].error_code
    )


def append_to_an_unset_list(of: Profile) -> int:
    return alter_configs(of, "foo", "leader.replication.throttled.replicas", 2, "0:1")


def configs_of_an_unknown_topic(of: Profile) -> int:
    return alter_configs(of, "unknown", "retention.ms", 0, "1")


def a_config_of_another_type(of: Profile) -> int:
    return alter_configs(of, "foo", "retention.ms", 0, "soon")


def a_partition_without_a_leader(of: Profile) -> int:
    at = broker(of, "foo=2")
    Operations(at.cluster).stop_broker(2)
    body = MetadataRequest.from_json({"topics": [{"name": "foo"}], "allowAutoTopicCreation": False,
                                      "includeClusterAuthorizedOperations": False,
                                      "includeTopicAuthorizedOperations": False}, 8)  # fmt: skip
    return int(at.ask(body, 8).topics[0].partitions[0].error_code)


def create_without_time(of: Profile) -> int:
    return create(of, timeout_ms=0)[0]


def grow_with_create_on_the_cluster(of: Profile) -> int:
    cluster = simulated(of, 3, "foo=1")
    create = int(AclOperation.CREATE)
    cluster.acls.create([AclBinding(4, CLUSTER_NAME, 3, ANONYMOUS, "*", create, 3)])
    at = DirectBroker(cluster, profile_name=of, security=Security(Authorizer()))
    row = {"name": "foo", "count": 2, "assignments": None}
    body = CreatePartitionsRequest.from_json(
        {"topics": [row], "timeoutMs": 1000, "validateOnly": True}, 1
    )
    return int(at.ask(body, 1).results[0].error_code)


def create_with_a_null_config(of: Profile) -> tuple[int, Any]:
    return create(of, configs=[{"name": "retention.ms", "value": None}])


def create_beyond_the_quota(of: Profile) -> int:
    at = mutations.ThrottlingBroker(simulated(of), profile_name=of)
    mutations.limit(at.cluster, 1.0)
    at.ask(mutations.create(("a", 12)), 6)
    return int(at.ask(mutations.create(("b", 1)), 6).throttle_time_ms)


def create_the_metadata_topic(of: Profile) -> int:
    return create(of, "__cluster_metadata")[0]


def every_scram_user(of: Profile) -> list[str]:
    at = broker(of)
    at.cluster.scram.alter([], [CredentialChange("a user~", 1, 4096, b"salt", b"password")])
    null = at.ask("DescribeUserScramCredentials", 0, users=None)
    empty = at.ask("DescribeUserScramCredentials", 0, users=[])
    assert null == empty, "either stands for all users"
    return [each.user for each in null.results]


def a_replica_that_stays_out_of_sync(of: Profile) -> bool:
    cluster = simulated(of, 3, "foo=1,2")
    Operations(cluster).leave_isr(FOO, 2)
    cluster.reassignments.alter([("foo", [(0, [1, 2, 3])])])
    return bool(Operations(cluster).join_isr(FOO, 3).reassigning)


class Case(NamedTuple):
    """``base`` is a profile on which the fix is switched."""

    issue: str
    base: str
    see: See
    with_fix: Any
    without: Any


NULLS = "Null value not supported for topic configs"
CASES: Final = (
    Case("KAFKA-6773", "kafka-3.9", beat_without_a_group_id, 24, 25),
    Case("KAFKA-7610", "kafka-3.9", a_new_member_waits_for_five_minutes, True, False),
    Case("KAFKA-8386", "kafka-3.9", sync_with_a_dead_group, 15, 25),
    Case("KAFKA-9752", "kafka-2.4", a_new_member_that_never_syncs, ["Empty"] * 3,
         ["CompletingRebalance", "CompletingRebalance", "Empty"]),
    Case("KAFKA-9801", "kafka-3.9", a_static_member_returns_before_the_assignment,
         "PreparingRebalance", "CompletingRebalance"),
    Case("KAFKA-9885", "kafka-3.9", join_a_group_above_its_limit, 0, 81),
    Case("KAFKA-10284", "kafka-3.9", a_static_member_changes_the_protocol, 2, 1),
    Case("KAFKA-12890", "kafka-3.9", members_that_do_not_sync,
         "PreparingRebalance", "CompletingRebalance"),
    Case("KAFKA-13636", "kafka-3.9", offsets_during_a_rebalance, None, 7 * offsets.DAY),
    Case("KAFKA-14009", "kafka-3.9", a_member_brings_another_time_out, 90_000, 60_000),
    Case("KAFKA-19233", "kafka-4.4", join_again_with_epoch_0, 0, 110),
    Case("KAFKA-19431", "kafka-4.4", unsubscribe, ["foo-0"], ["bar-0", "foo-0"]),
    Case("KAFKA-20601", "kafka-4.4", a_static_member_returns_to_a_full_group, 0, 81),
    Case("KAFKA-20662", "kafka-4.4", join_with_an_unreadable_subscription, 23, -1),
    Case("KAFKA-20899", "kafka-4.4", a_standby_of_two_members, ["c"], ["d"]),
    Case("KAFKA-5793", "kafka-2.4", an_unknown_producer, 59, 45),
    Case("KAFKA-7298", "kafka-2.4", a_producer_known_by_its_marker, 59, 45),
    Case("KAFKA-7190", "kafka-2.4", a_producer_whose_batches_are_gone, 0, 59),
    Case("KAFKA-19367", "kafka-4.4", a_producer_that_comes_back, (1, 2), (2, 3)),
    Case("KAFKA-18202", "kafka-4.4", an_unknown_producer_of_version_2, 45, 0),
    Case("KAFKA-9600", "kafka-3.9", end_with_a_newer_epoch,
         [90, "Ongoing", 0], [90, "PrepareCommit", 51]),
    Case("KAFKA-9656", "kafka-3.9", commit_while_the_coordinator_loads, 15, 14),
    Case("KAFKA-9666", "kafka-3.9", fences_that_fail, 1, 2),
    Case("KAFKA-12330", "kafka-4.4", turns_of_partitions, [BAR], [FOO]),
    Case("KAFKA-12996", "kafka-3.9", fetch_below_the_log_with_a_lost_epoch, 1, 0),
    Case("KAFKA-13767", "kafka-4.4", a_fetch_that_is_redirected, True, False),
    Case("KAFKA-13837", "kafka-4.4", a_follower_that_is_no_replica, 6, 0),
    Case("KAFKA-14372", "kafka-4.4", a_preferred_replica_out_of_sync, -1, 4),
    Case("KAFKA-15583", "kafka-4.4", the_watermark_of_a_small_isr, 0, 1),
    Case("KAFKA-8875", "kafka-3.9-zk", create_what_exists_with_too_many_replicas, 36, 38),
    Case("KAFKA-9038", "kafka-3.9-zk", grow_during_another_reassignment, 0, 60),
    Case("KAFKA-9329", "kafka-3.9-zk", move_to_no_replica,
         "Empty replica list specified in partition reassignment.",
         "Replica assignment is invalid."),
    Case("KAFKA-9644", "kafka-3.9-zk", append_to_an_unset_list, 0, -1),
    Case("KAFKA-10033", "kafka-3.9-zk", configs_of_an_unknown_topic, 3, -1),
    Case("KAFKA-10312", "kafka-3.9-zk", a_partition_without_a_leader, 5, 72),
    Case("KAFKA-12778", "kafka-4.4", create_without_time, 7, 0),
    Case("KAFKA-13661", "kafka-4.4", grow_with_create_on_the_cluster, 29, 0),
    Case("KAFKA-13863", "kafka-4.4", create_with_a_null_config,
         (40, f"{NULLS}: retention.ms"), (0, None)),
    Case("KAFKA-13863", "kafka-3.9-zk", create_with_a_null_config,
         (40, f"{NULLS}: retention.ms"), (42, f"{NULLS} : retention.ms")),
    Case("KAFKA-13899", "kafka-3.9-zk", a_config_of_another_type, 40, 42),
    Case("KAFKA-14351", "kafka-4.4", create_beyond_the_quota, 1000, 0),
    Case("KAFKA-14358", "kafka-4.4", create_the_metadata_topic, 42, 0),
    Case("KAFKA-15243", "kafka-3.9-zk", every_scram_user, ["a user~"], ["a%20user%7E"]),
    Case("KAFKA-19975", "kafka-4.4", a_replica_that_stays_out_of_sync, False, True),
)  # fmt: skip


FIRST: Final = {
    "KAFKA-5793": "1.0", "KAFKA-6773": "2.0", "KAFKA-7190": "2.4", "KAFKA-7298": "2.0.1 2.1",
    "KAFKA-7610": "2.1.1 2.2", "KAFKA-8386": "2.3", "KAFKA-8875": "2.3.1 2.4", "KAFKA-9038": "2.4",
    "KAFKA-9329": "2.5", "KAFKA-9600": "2.6", "KAFKA-9644": "2.6", "KAFKA-9656": "2.6",
    "KAFKA-9666": "2.6", "KAFKA-9752": "2.5", "KAFKA-9801": "2.5", "KAFKA-9885": "2.6",
    "KAFKA-10033": "2.7", "KAFKA-10284": "2.6.1 2.7", "KAFKA-10312": "2.7",
    "KAFKA-12330": "3.0", "KAFKA-12778": "3.0", "KAFKA-12890": "2.8.1 3.0",
    "KAFKA-12996": "2.7.2 2.8.1 3.0",
    "KAFKA-13636": "2.8.2 3.0.1 3.1.1 3.2", "KAFKA-13661": "3.1.1 3.2", "KAFKA-13767": "3.2",
    "KAFKA-13837": "3.3", "KAFKA-13863": "3.3", "KAFKA-13899": "3.3", "KAFKA-14009": "3.3.2 3.4",
    "KAFKA-14351": "3.5", "KAFKA-14358": "3.3.2 3.4", "KAFKA-14372": "3.3.2 3.4",
    "KAFKA-15243": "3.5.2 3.6", "KAFKA-15583": "3.7", "KAFKA-18202": "4.1", "KAFKA-19233": "4.2",
    "KAFKA-19367": "4.0.1 4.1", "KAFKA-19431": "4.2", "KAFKA-19975": "4.3", "KAFKA-20601": "4.4",
    "KAFKA-20662": "4.2.2 4.4", "KAFKA-20899": "4.2.2 4.4",
}  # fmt: skip
"""The first releases with each fix, by Kafka's tags: of the lines that were open, and then all."""

LINES: Final = [(0, 10, 2), (0, 11, 0), *((1, minor) for minor in range(2)),
                *((2, minor) for minor in range(9)), *((3, minor) for minor in range(10)),
                *((4, minor) for minor in range(5))]  # fmt: skip


def marked(value: Any, issue: str, name: str) -> ParameterSet:
    """A parameter of a test that shows the requirements which a fix changes."""
    ids = re.findall(r"[\w-]+", FIXES[issue].requirement)
    return pytest.param(value, id=name, marks=pytest.mark.requirement(*ids))


@pytest.mark.parametrize("issue", [marked(issue, issue, issue) for issue in FIRST])
def test_releases_have_a_fix_from_a_patch_on(issue: str) -> None:
    *backported, since = [tuple(map(int, each.split("."))) for each in FIRST[issue].split()]
    for line in LINES:
        for patch in range(4):
            number = (*line, patch) if len(line) == 2 else line
            has_it = number >= since or any(
                number[:2] == first[:2] and number >= first for first in backported
            )
            assert Release(number).has(FIXES[issue]) == has_it, number


@pytest.mark.parametrize("has_it", [True, False])
@pytest.mark.parametrize(
    "case", [marked(case, case.issue, f"{case.issue}-{case.base}") for case in CASES]
)
def test_a_fix_can_be_switched(case: Case, has_it: bool) -> None:
    switched = with_fixes(profile(case.base), {case.issue: has_it})
    assert case.see(switched) == (case.with_fix if has_it else case.without)


def test_every_fix_has_a_case_and_a_sentence() -> None:
    assert {case.issue for case in CASES} == FIXES.keys() == FIRST.keys()
    assert list(FIXES) == sorted(FIXES, key=lambda issue: int(issue.removeprefix("KAFKA-")))
    for fix in FIXES.values():
        assert fix.says.endswith(".")
        assert all(first < fix.since for first in fix.backports)


async def test_the_option_switches_a_fix() -> None:
    with pytest.raises(Exception, match="no fix is named 'KAFKA-1923'; did you mean KAFKA-19233"):
        MockCluster(fixes={"KAFKA-1923": True})
    lacking = MockCluster.from_options(
        ClusterOptions(profile="kafka-4.4+KAFKA-20601", fixes={"KAFKA-19233": False})
    )
    software = lacking.cluster.logs.release
    assert dict(software.fixes) == {"KAFKA-19233": False, "KAFKA-20601": True}
