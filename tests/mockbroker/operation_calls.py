"""A call of each operation, and a cluster that can carry all of them out."""

from msgspec import structs

from mockbroker import MockCluster
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.groups.classic.classic_group import JoinRequest
from mockbroker.simulation.groups.consumer.consumer_group import ConsumerGroup
from mockbroker.simulation.groups.streams.streams_group import Member, StreamsGroup
from mockbroker.simulation.log.batches.batch_header import BatchHeader
from mockbroker.simulation.operations import OPERATIONS, Argument, Operation, parse_operation
from tests.mockbroker.simulation.transactions.transacting import Producer

__all__ = ["CALLS", "body_of", "cluster", "prepare", "words"]

_PROGRAM = [
    "create-topic bar:2:3",
    "create-topic baz:1:1",
    "add-partitions baz 2",
    "leave-isr foo-0 3",
    "join-isr foo-0 3",
    "append foo-0 one",
    'append foo-0 [{"key": "k", "value": "two"}, {"value": "three"}]',
    "hold-replication foo-0 2",
    "append foo-0 four words in it",
    "replicate foo-0 2 4",
    "release-replication foo-0",
    "lag-high-watermark foo-0 1",
    "truncate foo-0 3",
    "corrupt-batch foo-0 0 crc",
    "roll-segment foo-0",
    "apply-retention foo-0",
    "compact",
    "copy-to-remote foo-0 1",
    "jump-local-log-start foo-0 1",
    "jump-log-start foo-0 1",
    # Before the election: the next leader does not know of acquired records.
    "set-delivery-count h foo-0 0 3",
    "unclean-election foo-0 2",
    "forget-producer foo-0",
    "forget-producer foo-0 7",
    "hold-produces",
    "release-produces",
    "hold-fetches foo-0",
    "release-fetches foo-0",
    "complete-fetches",
    "expire-fetch-session 1",
    "diverge foo-0 0 1",
    "hold-joins g",
    "complete-join g",
    "rebalance g",
    "set-generation g 7",
    "fence-instance g one",
    'set-target-assignment c {"one": ["foo-0"]}',
    "hold-assignment c",
    "release-assignment c",
    "release-assignor c",
    "shutdown-application s m",
    "expire-locks h foo-0",
    "expire-locks h",
    "expire-share-session h one",
    "expire-member g one",
    "remove-member g two",
    "hold-commits g",
    "release-commits g",
    "set-offset g foo-0 1",
    "drop-offset g foo-0",
    "delete-topic baz",
    "set-offset g foo-0 0",
    "hold-markers t",
    "abort-transaction t",
    "release-markers",
    "fence-producer t",
    "set-producer-epoch t 7",
    "expire-transaction u",
    'append foo-0 {"records": [{}], "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}',
    "write-marker foo-0 7 abort",
    "load-coordinator group g",
    "finish-loading group g",
    "move-coordinator group g 2",
    "hold-metadata 4",
    "release-metadata 4",
    "close-listener 4",
    "open-listener 4",
    "stop-broker 4",
    "start-broker 4",
    "fail-log-dir 4 /var/lib/kafka/data",
    "mend-log-dir 4",
    "set-level 4 4=0-2",
    "advertise 4 localhost:32768",
    "set-topic-config bar cleanup.policy compact",
    "make-sink foo",
    "make-source foo one",
    "throttle-client reader 500ms",
    "advance 2000ms",
    "propagation 0ms",
    "set-latency 5ms 2",
    "set-bandwidth 1000000 2",
    "hold-elections",
    "release-elections",
    "write-znode /admin/mine some text",
    "delete-znode /admin/mine",
    "append-znode /admin/mine- ",
    "failover 2",
    "expire-session 4",
    "resign-controller",
    "failover 1",
    *(f"upgrade {broker} kafka-3.9-zk" for broker in (1, 2, 3, 4)),
    "migrate-to-kraft",
    "kill-controller-after 9",
]
"""Operations in an order in which the cluster can carry all of them out."""

_EXAMPLES = {
    "group": "g", "member": "one", "partition": "foo-0", "broker": "2", "offset": "0",
    "topic": "foo", "transactional_id": "t", "duration": "5ms", "path": "/x",
}  # fmt: skip
"""Values of arguments, by name."""


def _derived(operation: Operation) -> str:
    """A call of an operation that the program lacks."""

    def example(argument: Argument) -> str:
        return _EXAMPLES.get(argument.name, "1")

    return " ".join([operation.name, *map(example, operation.arguments)])


_COVERED = {parse_operation(text).operation.name for text in _PROGRAM}
CALLS = [*map(_derived, (op for name, op in OPERATIONS.items() if name not in _COVERED)), *_PROGRAM]
"""A call of each operation. One that the program lacks comes first, with derived arguments."""


def cluster() -> MockCluster:
    made = MockCluster(4, topics=["foo=1,2,3"], profile="kafka-2.4", clock="manual")
    prepare(made)
    return made


def prepare(mock: MockCluster) -> None:
    """Let there be what the calls act on."""
    join_group(mock)
    begin_transactions(mock)
    tier(mock)


def join_group(mock: MockCluster) -> None:
    """Let three static members join group g; the simulated time stands, so they wait. There are an
    empty consumer group c, a streams group s with member m, and a partition of share group h."""
    for instance in ("one", "two", "three"):
        request = JoinRequest("g", "", "consumer", (("range", b""),), 10_000, 60_000, instance)
        mock.cluster.groups.join(request, lambda result: None)
    # No client of this release makes a consumer or streams group.
    mock.cluster.groups.consumer._groups["c"] = ConsumerGroup("c")
    mock.cluster.groups.streams._groups["s"] = StreamsGroup("s", members={"m": Member("m")})
    share_partition(mock)


def tier(mock: MockCluster) -> None:
    """Let topic foo have tiered storage, which the configs of this release lack."""
    logs = mock.cluster.logs
    if mock.cluster.topics.get("foo") is not None:
        logs._settings["foo"] = structs.replace(logs.settings("foo"), is_tiered=True)


def share_partition(mock: MockCluster) -> None:
    """Let a member of share group h have records of foo-0, if there is that topic."""
    topic = mock.cluster.topics.get("foo")
    if topic is None:
        return
    fetches, key = mock.cluster.share_fetches, (topic.topic_id, 0)
    fetches.initialize("h", frozenset({key}))
    share = fetches.partition("h", key)
    assert share is not None
    share.begin_at(0, 0)
    records = BatchHeader(0, 0, 0, 2, 0, 0, 4, 0, 0, -1, -1, -1, 5)
    acquired = share.acquire("one", [records], [], 0, most=5, batch_size=5, strict=False)
    assert acquired == [(0, 4, 1)]


def begin_transactions(mock: MockCluster) -> None:
    """Let the transactional ids t and u have open transactions."""
    cluster = mock.cluster
    for kind in (CoordinatorKind.TRANSACTION, CoordinatorKind.GROUP):
        cluster.coordinators.find(kind, "t", 1)
    for name in "tu":
        producer = Producer(cluster, name, version=0)
        assert (producer.init().code, producer.add(("__consumer_offsets", 0))) == (0, 0)


def words(text: str) -> list[str]:
    """A call as the words of a command line, without the optional arguments that it lacks."""
    operation = parse_operation(text).operation
    return [operation.name, *text.split(" ", len(operation.arguments))[1:]]


def body_of(text: str) -> dict[str, object]:
    """A call as the JSON object that the control port takes."""
    given = zip(parse_operation(text).operation.arguments, words(text)[1:], strict=False)
    return {
        each.name: int(word) if each.type.schema.get("type") == "integer" else word
        for each, word in given
    }
