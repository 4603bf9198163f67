"""DescribeConfigs (32) and IncrementalAlterConfigs (44)."""

import pytest

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.configs.list_edits import LIST_EDITS
from mockbroker.simulation.state.cluster_parts import Broker
from mockbroker.simulation.state.results import AlterConfigsResult, ConfigSynonym, NewTopic
from tests.mockbroker.simulated import simulated_cluster

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture
def cluster() -> Cluster:
    return simulated_cluster(2, topics=["foo:1:1"], broker_configs={"broker.rack": "r1"})


def alter(
    cluster: Cluster, resource: tuple[int, str], *operations: tuple[str, int, str | None]
) -> tuple[int, str | None]:
    (result,) = cluster.config_changes.alter_incrementally([(*resource, operations)])
    assert (result.resource_type, result.resource_name) == resource
    return result.error_code, result.error_message


def test_who_decides_a_topics_config(cluster: Cluster) -> None:
    def effective() -> tuple[str | None, int]:
        entry = cluster.configs.topic("foo", "retention.ms")
        return entry.value, entry.source

    assert effective() == ("604800000", 5)
    alter(cluster, (BROKER, ""), ("log.retention.ms", SET, "1"))
    assert effective() == ("1", 3)
    alter(cluster, (BROKER, "1"), ("log.retention.ms", SET, "2"))
    assert effective() == ("2", 2)
    alter(cluster, (TOPIC, "foo"), ("retention.ms", SET, "3"))
    assert effective() == ("3", 1)
    assert cluster.configs.topic("foo", "retention.ms").synonyms == (
        ConfigSynonym("retention.ms", "3", 1),
        ConfigSynonym("log.retention.ms", "2", 2),
        ConfigSynonym("log.retention.ms", "1", 3),
        ConfigSynonym("log.retention.hours", "168", 5),
    )
    # Broker 2 has no value of its own: it sees the cluster's behind the topic's.
    seen = cluster.configs.describe(TOPIC, "foo", ["retention.ms"], receiver=2).configs[0]
    assert [s.value for s in seen.synonyms] == ["3", "1", "168"]
    alter(cluster, (TOPIC, "foo"), ("retention.ms", DELETE, None))
    assert effective() == ("2", 2)


def test_a_brokers_configs(cluster: Cluster) -> None:
    alter(cluster, (BROKER, "2"), ("follower.replication.throttled.rate", SET, "9"))
    alter(cluster, (BROKER, "2"), ("my.plugin.key", SET, "secret"))
    described = cluster.configs.describe(BROKER, "2", receiver=2)
    entries = {entry.name: entry for entry in described.configs}
    assert (entries["broker.id"].value, entries["broker.id"].read_only) == ("2", True)
    assert entries["broker.rack"].value == "r1"
    assert entries["follower.replication.throttled.rate"].value == "9"
    assert not entries["follower.replication.throttled.rate"].read_only
    # What Kafka does not know it keeps to itself.
    assert (entries["my.plugin.key"].value, entries["my.plugin.key"].sensitive) == (None, True)
    assert "my.plugin.key" not in {e.name for e in cluster.configs.describe(BROKER, "1").configs}


def test_the_cluster_wide_default_lists_only_what_is_set(cluster: Cluster) -> None:
    assert cluster.configs.describe(BROKER, "").configs == ()
    alter(cluster, (BROKER, ""), ("min.insync.replicas", SET, "2"))
    (entry,) = cluster.configs.describe(BROKER, "").configs
    assert (entry.name, entry.value, entry.source) == ("min.insync.replicas", "2", 3)


def test_names_filter(cluster: Cluster) -> None:
    names = ["segment.ms", "nosuch", "cleanup.policy"]
    found = cluster.configs.describe(TOPIC, "foo", names).configs
    assert [entry.name for entry in found] == ["cleanup.policy", "segment.ms"]
    everything = cluster.configs.describe(TOPIC, "foo").configs
    assert cluster.configs.describe(TOPIC, "foo", []).configs == everything


@pytest.mark.parametrize(
    ("resource", "code", "text"),
    [
        ((TOPIC, "nosuch"), 3, None),
        ((TOPIC, "a b"), 17, "Topic name is invalid: 'a b' contains one or more characters other "
         "than ASCII alphanumerics, '.', '_' and '-'"),
        ((BROKER, "x"), 42, "Broker id must be an integer, but it is: x"),
        ((BROKER, "2"), 42, "Unexpected broker id, expected 1 or empty string, but received 2"),
        ((64, "x"), 42, "Unsupported resource type: 64"),
    ],
)  # fmt: skip
def test_describe_refusals(cluster, resource, code, text):
    result = cluster.configs.describe(*resource, receiver=1)
    assert (result.error_code, result.error_message, result.configs) == (code, text, ())


def test_lists_grow_and_shrink(cluster: Cluster) -> None:
    key, foo = "leader.replication.throttled.replicas", (TOPIC, "foo")
    for operation, value, expected in [
        (APPEND, "0:1,0:2", "0:1,0:2"),
        (APPEND, "0:2,1:1", "0:1,0:2,1:1"),
        (SUBTRACT, "0:1,9:9", "0:2,1:1"),
        (SET, "", ""),
        (APPEND, "0:1", "0:1"),
        (DELETE, None, ""),
    ]:
        assert alter(cluster, foo, (key, operation, value)) == (0, None)
        assert cluster.configs.topic("foo", key).value == expected
    assert alter(cluster, foo, ("cleanup.policy", APPEND, "compact")) == (0, None)
    assert cluster.configs.topic("foo", "cleanup.policy").value == "delete,compact"


@pytest.mark.parametrize(
    ("resource", "operation", "code", "text"),
    [
        ((TOPIC, "nosuch"), ("retention.ms", SET, "1"), 3, "The topic 'nosuch' does not exist."),
        ((TOPIC, "foo"), ("nosuch", SET, "1"), 40, "Unknown topic config name: nosuch"),
        ((TOPIC, "foo"), ("retention.ms", APPEND, "1"), 40,
         "Can't APPEND to key retention.ms because its type is not LIST."),
        ((TOPIC, "foo"), ("retention.ms", SUBTRACT, "1"), 40,
         "Can't SUBTRACT to key retention.ms because its type is not LIST."),
        ((TOPIC, "foo"), ("retention.ms", SET, "abc"), 40,
         "Invalid value abc for configuration retention.ms: Not a number of type LONG"),
        ((TOPIC, "foo"), ("retention.ms", SET, "9223372036854775808"), 40,
         "Invalid value 9223372036854775808 for configuration retention.ms: "
         "Not a number of type LONG"),
        ((TOPIC, "foo"), ("retention.ms", SET, "1_0"), 40,
         "Invalid value 1_0 for configuration retention.ms: Not a number of type LONG"),
        ((TOPIC, "foo"), ("min.insync.replicas", SET, "0"), 40,
         "Invalid value 0 for configuration min.insync.replicas: Value must be at least 1"),
        ((TOPIC, "foo"), ("min.cleanable.dirty.ratio", SET, "1.5"), 40,
         "Invalid value 1.5 for configuration min.cleanable.dirty.ratio: "
         "Value must be no more than 1"),
        ((TOPIC, "foo"), ("min.cleanable.dirty.ratio", SET, "x"), 40,
         "Invalid value x for configuration min.cleanable.dirty.ratio: "
         "Not a number of type DOUBLE"),
        ((TOPIC, "foo"), ("preallocate", SET, "yes"), 40,
         "Invalid value yes for configuration preallocate: "
         "Expected value to be either true or false"),
        ((TOPIC, "foo"), ("message.timestamp.type", SET, "Never"), 40,
         "Invalid value Never for configuration message.timestamp.type: "
         "String must be one of: CreateTime, LogAppendTime"),
        ((TOPIC, "foo"), ("cleanup.policy", SET, "delete,burn"), 40,
         "Invalid value burn for configuration cleanup.policy: "
         "String must be one of: compact, delete"),
        ((TOPIC, "foo"), ("retention.ms", SET, None), 42,
         "Null value not supported for : retention.ms"),
        ((TOPIC, "foo"), ("retention.ms", 9, "1"), -1, None),
        ((BROKER, "1"), ("node.id", SET, "7"), 42,
         "Cannot update these configs dynamically: [node.id]"),
        ((BROKER, "9"), ("num.io.threads", SET, "7"), 102, "No node with id 9 found."),
        ((BROKER, "x"), ("num.io.threads", SET, "7"), 42,
         "Unable to parse broker name as a base 10 number."),
        ((BROKER, "-1"), ("num.io.threads", SET, "7"), 42, "Invalid negative broker ID."),
        ((8, "1"), ("kafka", SET, "INFO"), 42, "Unknown resource type 8"),
    ],
)  # fmt: skip
def test_alter_refusals(cluster, resource, operation, code, text):
    before = len(cluster.log)
    # The good operation beside it is not carried out either.
    good = ("unclean.leader.election.enable", SET, "true")
    assert alter(cluster, resource, good, operation) == (code, text)
    assert len(cluster.log) == before


def test_duplicates(cluster: Cluster) -> None:
    foo = (TOPIC, "foo")
    assert alter(cluster, foo, ("segment.ms", SET, "1"), ("segment.ms", SET, "2")) == (
        42,
        "Error due to duplicate config keys",
    )
    operations = [("segment.ms", SET, "1")]
    assert cluster.config_changes.alter_incrementally([(*foo, operations), (*foo, operations)]) == (
        AlterConfigsResult(TOPIC, "foo", 42, "Each resource must appear at most once."),
    )
    assert cluster.configs.topic("foo", "segment.ms").source == 5


def test_validate_only(cluster: Cluster) -> None:
    before = len(cluster.log)
    (result,) = cluster.config_changes.alter_incrementally(
        [(TOPIC, "foo", [("segment.ms", SET, "1")])], validate_only=True
    )
    assert result.error_code == 0
    assert len(cluster.log) == before


def test_broker_0_sees_a_groups_configs_by_its_own() -> None:
    cluster = Cluster([Broker(1), Broker(0)])
    name = "consumer.assignment.interval.ms"
    alter(cluster, (BROKER, "0"), (f"group.{name}", SET, "7"))
    values = [
        cluster.configs.describe(32, "g", [name], receiver=receiver).configs[0].value
        for receiver in (0, 1)
    ]
    assert values == ["7", "1000"]


THREADS = (
    "Invalid value org.apache.kafka.common.config.ConfigException: {problem} for configuration "
    "Invalid dynamic configuration"
)
COUNT = "Dynamic thread count update validation failed for {name}={wanted}, value should"


def marked(requirement: str, *values: object) -> object:
    return pytest.param(*values, marks=[pytest.mark.requirement(requirement)])


@pytest.mark.parametrize(
    ("name", "operation", "text"),
    [
        marked("CONFIG-01", "1", ("broker.id", SET, "1"),
               "Cannot update these configs dynamically: [broker.id]"),
        marked("CONFIG-01", "1", ("broker.id", DELETE, None), None),
        marked("CONFIG-02", "1", ("ssl.keystore.type", SET, "x"),
               "These security configs can be dynamically updated only per-listener using the "
               "listener prefix: [ssl.keystore.type]"),
        marked("CONFIG-02", "1", ("listener.name.a.ssl.keystore.type", SET, "x"), None),
        marked("CONFIG-03", "", ("sasl.enabled.mechanisms", SET, "PLAIN"),
               "Cannot update these configs at default cluster level, broker id must be specified: "
               "[sasl.enabled.mechanisms]"),
        marked("CONFIG-03", "1", ("sasl.enabled.mechanisms", SET, "PLAIN"), None),
        marked("CONFIG-03", "", ("cordoned.log.dirs", SET, "*"),
               "Cannot update these configs at default cluster level, broker id must be specified: "
               "[cordoned.log.dirs]"),
        marked("CONFIG-04", "", ("max.connections.per.ip.overrides", SET, "a:1,bb"),
               "Error parsing configuration property 'max.connections.per.ip.overrides': begin 0, "
               "end -1, length 2"),
        marked("CONFIG-04", "", ("max.connections.per.ip.overrides", SET, "a:x"),
               'For input string: "x"'),
        marked("CONFIG-04", "1", ("listener.security.protocol.map", SET, "A:PLAINTEXT,b"),
               "Error parsing configuration property 'listener.security.protocol.map': begin 0, "
               "end -1, length 1"),
        marked("CONFIG-05", "1", ("cordoned.log.dirs", SET, "/x, /y"),
               "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs "
               "or log.dir. Missing entries : /x, /y"),
        marked("CONFIG-05", "1", ("cordoned.log.dirs", SET, "*"), None),
        marked("CONFIG-05", "1", ("cordoned.log.dirs", SET, "/var/lib/kafka/data"), None),
        marked("CONFIG-06", "", ("log.cleaner.threads", SET, "0"), "/ by zero"),
        marked("CONFIG-06", "", ("log.cleaner.dedupe.buffer.size", SET, "1048576"),
               "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per "
               "cleaner thread."),
        marked("CONFIG-07", "", ("log.cleaner.threads", SET, "3"), THREADS.format(
               problem="Log cleaner threads cannot be increased to more than double the current "
               "value 1")),
        marked("CONFIG-07", "1", ("num.io.threads", SET, "17"), THREADS.format(
               problem=COUNT.format(name="num.io.threads", wanted=17)
               + " not be greater than double the current value 8")),
        marked("CONFIG-07", "1", ("num.io.threads", SET, "3"), THREADS.format(
               problem=COUNT.format(name="num.io.threads", wanted=3)
               + " be at least half the current value 8")),
        marked("CONFIG-07", "1", ("num.io.threads", SET, "4"), None),
        marked("CONFIG-08", "", ("max.connections", SET, "0"),
               THREADS.format(problem="Invalid max.connections 0")),
        marked("CONFIG-09", "", ("log.retention.ms", SET, "0"),
               "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or "
               "equal to 1"),
        marked("CONFIG-09", "", ("log.retention.ms", SET, "-7"), None),
        marked("CONFIG-12", "", ("nope", 4, ""), "Unknown operations type 4"),
        marked("CONFIG-26", "", ("log.roll.ms", SET, "0"),
               "requirement failed: log.roll.ms must be greater than or equal to 1"),
        marked("CONFIG-26", "", ("log.roll.ms", SET, "1"), None),
        marked("CONFIG-26", "", ("log.roll.jitter.ms", SET, "-1"),
               "requirement failed: log.roll.jitter.ms must be greater than or equal to 0"),
        marked("CONFIG-26", "", ("log.roll.jitter.ms", SET, "0"), None),
        marked("CONFIG-26", "", ("max.connections.per.ip", SET, "0"),
               "requirement failed: max.connections.per.ip can be set to zero only if "
               "max.connections.per.ip.overrides property is set."),
        marked("CONFIG-26", "", ("max.connections.per.ip", SET, "1"), None),
        marked("CONFIG-26", "", ("log.local.retention.ms", SET, "-1"),
               THREADS.format(problem="Invalid value -1 for configuration log.local.retention.ms: "
               "Value must not be -1 as log.retention.ms value is set as 604800000.")),
        marked("CONFIG-26", "", ("log.local.retention.ms", SET, "-2"), None),
        marked("CONFIG-26", "", ("metric.reporters", SET, "x"),
               THREADS.format(problem="Validation of dynamic config update of "
               "Set(metric.reporters) failed with class class kafka.server.DynamicMetricsReporters"
               )),
        marked("CONFIG-26", "", ("metric.reporters", SET,
               "org.apache.kafka.common.metrics.JmxReporter"), None),
        marked("CONFIG-26", "1", ("principal.builder.class", SET, " x "),
               "Invalid value x for configuration principal.builder.class: Class x could not be "
               "found."),
        marked("CONFIG-26", "", ("listeners", SET, ""),
               "Configuration 'listeners' must not be empty. Valid values include: any non-empty "
               "value"),
        marked("CONFIG-26", "", ("compression.gzip.level", SET, "0"),
               "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 "
               "and 9 or equal to -1"),
        marked("CONFIG-26", "1", ("ssl.client.auth", SET, "x"),
               "Invalid value x for configuration ssl.client.auth: String must be one of: "
               "required, requested, none"),
    ],
)  # fmt: skip
def test_what_a_broker_refuses(cluster, name, operation, text):
    assert alter(cluster, (BROKER, name), operation) == (42 if text else 0, text)


@pytest.mark.requirement("CONFIG-22", "REL-103")
@pytest.mark.parametrize(
    ("release", "codecs"),
    [
        ((2, 0), "uncompressed,snappy,lz4,gzip,producer"),
        ((2, 1), "uncompressed,zstd,lz4,snappy,gzip,producer"),
        ((3, 2), "uncompressed,zstd,lz4,snappy,gzip,producer"),
        ((3, 3), ""),
    ],
)
def test_codecs_of_brokers(release: tuple[int, int], codecs: str) -> None:
    cluster = simulated_cluster(1, release=release)
    name = "compression.type"
    text = (
        f"requirement failed: {name} : best is not valid. Valid options are {codecs}"
        if codecs
        else f"Invalid value best for configuration {name}: String must be one of: uncompressed, "
        "zstd, lz4, snappy, gzip, producer"
    )
    assert alter(cluster, (BROKER, ""), (name, SET, "best")) == (42, text)
    wrong_case, _ = alter(cluster, (BROKER, ""), (name, SET, " GZIP "))
    assert wrong_case == (0 if codecs else 42)
    zstd, _ = alter(cluster, (BROKER, ""), (name, SET, "zstd"))
    assert zstd == (42 if release == (2, 0) else 0)


@pytest.mark.requirement("CONFIG-23", "CONFIG-01")
@pytest.mark.parametrize(
    ("listeners", "problem"),
    [
        ("A://a:1, 4.0", "Error creating broker listeners from 'A://a:1, 4.0': Unable to parse 4.0 "
         "to a broker endpoint"),
        (" ", "requirement failed: inter.broker.listener.name must be a listener name defined in "
         "advertised.listeners. The valid options based on currently configured listeners are "),
        ("PLAINTEXT://a:1", "Cannot update these configs dynamically: Set(advertised.listeners)"),
    ],
)  # fmt: skip
def test_advertised_listeners(listeners: str, problem: str) -> None:
    cluster = simulated_cluster(1, release=(3, 9))
    change = ("advertised.listeners", SET, listeners)
    assert alter(cluster, (BROKER, "1"), change) == (42, problem)
    later = simulated_cluster(1, release=(4, 0))
    static = "Cannot update these configs dynamically: Set(advertised.listeners)"
    assert alter(later, (BROKER, "1"), change) == (42, static)


@pytest.mark.requirement("CONFIG-07")
def test_cleaner_threads_are_halved_at_most(cluster: Cluster) -> None:
    for threads in ("2", "4", "8"):
        assert alter(cluster, (BROKER, ""), ("log.cleaner.threads", SET, threads)) == (0, None)
    code, text = alter(cluster, (BROKER, ""), ("log.cleaner.threads", SET, "3"))
    assert (code, "reduced to less than half the current value 8" in (text or "")) == (42, True)


@pytest.mark.requirement("CONFIG-12")
def test_a_broker_appends_to_no_config_that_it_does_not_know(cluster: Cluster) -> None:
    assert alter(cluster, (BROKER, "1"), ("nope", APPEND, "x")) == (40, "Unknown config name: nope")


@pytest.mark.requirement("CONFIG-02", "CONFIG-03", "CONFIG-05", "CONFIG-12")
def test_what_brokers_of_4_2_refuse_otherwise() -> None:
    cluster = simulated_cluster(1, release=(4, 2))
    code, text = alter(cluster, (BROKER, "1"), ("ssl.keystore.type", SET, "x"))
    assert (code, (text or "").partition(": ")[2]) == (42, "HashSet(ssl.keystore.type)")
    for name in ("1", ""):
        assert alter(cluster, (BROKER, name), ("cordoned.log.dirs", SET, "/x")) == (0, None)
    assert alter(cluster, (BROKER, ""), ("nope", APPEND, "x")) == (-1, None)


@pytest.mark.requirement("CONFIG-14")
def test_versions_of_the_message_format() -> None:
    cluster = simulated_cluster(1, topics=["foo:1:1"], release=(3, 9))
    good = ("0.8.0", "0.10.2-IV0", "0.11.0.1", "2.1", "2.1-IV1", "2.1.7-IV3", " 3.9 ")
    bad = ("x", "", "0.8", "0.10", "0.10.3", "1.2", "2.1-IV9", "2.1-IVx", "5.0", "unstable")
    name = "message.format.version"
    for value in good:
        assert alter(cluster, (TOPIC, "foo"), (name, SET, value)) == (0, None)
    for value in bad:
        assert alter(cluster, (TOPIC, "foo"), (name, SET, value)) == (
            40,
            f"Invalid value {value} for configuration {name}: Version {value} is not a valid "
            "version",
        )


@pytest.mark.requirement("CONFIG-14")
@pytest.mark.parametrize(("release", "shown"), [((3, 2), "`x`"), ((3, 3), "x")])
def test_texts_about_versions_have_quotes_up_to_3_2(release: tuple[int, int], shown: str) -> None:
    cluster = simulated_cluster(1, topics=["foo:1:1"], reassignment="zookeeper", release=release)
    code, text = alter(cluster, (TOPIC, "foo"), ("message.format.version", SET, "x"))
    assert code in (40, 42)
    assert (text or "").endswith(f"Version {shown} is not a valid version")


@pytest.mark.requirement("CONFIG-07", "CONFIG-08", "CONFIG-26")
@pytest.mark.parametrize(
    "name", ["remote.log.reader.threads", "max.connection.creation.rate", "log.local.retention.ms"]
)
def test_values_of_what_a_release_lacks_are_not_checked(name: str) -> None:
    cluster = simulated_cluster(1, reassignment="zookeeper", release=(2, 4))
    for value in ("x", "0", "-1"):
        assert alter(cluster, (BROKER, ""), (name, SET, value)) == (0, None)


@pytest.mark.requirement("CONFIG-10")
def test_where_a_share_group_begins_to_read(cluster: Cluster) -> None:
    good = ("earliest", " latest ", "by_duration:PT1H", "by_duration:pt0s", "by_duration:P-1DT25H")
    bad = ("EARLIEST", "", "none", "a:b", "by_duration:", "by_duration:PT", "by_duration:-PT1H",
           "by_duration:PT1H-90M")  # fmt: skip
    name = "share.auto.offset.reset"
    for value in good:
        assert alter(cluster, (32, "g"), (name, SET, value)) == (0, None)
    for value in bad:
        assert alter(cluster, (32, "g"), (name, SET, value)) == (
            40,
            f"Invalid value {value} for configuration {name}: Invalid value `{value}` for "
            f"configuration {name}. The value must be either 'earliest', 'latest' or of the format "
            "'by_duration:<PnDTnHnMn.nS>'.",
        )
    assert cluster.configs.group("g", name, 1).value == "by_duration:P-1DT25H"


@pytest.mark.requirement("CONFIG-10")
@pytest.mark.parametrize(
    ("release", "least", "duration"),
    [((4, 0), 14, "PnDTnHnMn.nS."), ((4, 1), 1 << 20, "PnDTnHnMn.nS")],
)
def test_texts_of_4_0(release: tuple[int, int], least: int, duration: str) -> None:
    """As Kafka 4.0.2 and 4.1.2 answer."""
    cluster = simulated_cluster(1, topics=["foo:1:1"], release=release)
    code, text = alter(cluster, (TOPIC, "foo"), ("segment.bytes", SET, "-1"))
    assert (code, text) == (
        40, f"Invalid value -1 for configuration segment.bytes: Value must be at least {least}",
    )  # fmt: skip
    code, text = alter(cluster, (32, "g"), ("share.auto.offset.reset", SET, "x"))
    assert str(text).endswith(f"'by_duration:<{duration}>'.")


@pytest.mark.requirement("CONFIG-11")
def test_white_space_around_values(cluster: Cluster) -> None:
    foo = (TOPIC, "foo")
    assert alter(cluster, foo, ("compression.type", SET, " gzip ")) == (0, None)
    assert alter(cluster, foo, ("min.cleanable.dirty.ratio", SET, " NaN ")) == (0, None)
    assert [
        (alter(cluster, foo, (name, SET, " x "))[1] or "").partition(" for ")[0]
        for name in ("retention.ms", "compression.type")
    ] == ["Invalid value  x ", "Invalid value x"]


@pytest.mark.requirement("CONFIG-13")
@pytest.mark.parametrize("tiered", [False, True])
def test_remote_storage_of_topics_needs_that_of_brokers(tiered: bool) -> None:
    given = {"remote.log.storage.system.enable": "true"} if tiered else {}
    cluster = simulated_cluster(1, topics=["foo:1:1"], broker_configs=given)
    expected = (0, None) if tiered else (
        40,
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with "
        "remote log storage.",
    )  # fmt: skip
    name = "remote.storage.enable"
    assert alter(cluster, (TOPIC, "foo"), (name, SET, "true")) == expected
    (created,) = cluster.topics.create([NewTopic("bar", 99, 99, configs=((name, "true"),))])
    assert (created.error_code, created.error_message) == (
        (38, created.error_message) if tiered else expected
    )


DISABLED_WITHOUT_DELETION = (
    "It is invalid to disable remote storage without deleting remote data. If you want to keep the "
    "remote data and turn to read only, please set "
    "`remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable remote "
    "storage and delete all remote data, please set "
    "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
)
READ_ONLY = (
    "When `remote.log.copy.disable` is set to true, the `local.retention.{0}` and `retention.{0}` "
    "must be set to the identical value because there will be no more logs copied to the remote "
    "storage."
)


@pytest.mark.requirement("CONFIG-15", "CONFIG-16")
@pytest.mark.parametrize(
    ("release", "settings", "text"),
    [
        ((3, 6), {}, None),
        ((3, 6), {"cleanup.policy": "delete,compact"},
         "Remote log storage is unsupported for the compacted topics"),
        ((4, 0), {"cleanup.policy": "compact"},
         "Remote log storage is unsupported for the compacted topics"),
        ((4, 1), {"cleanup.policy": "compact"},
         "Remote log storage only supports topics with cleanup.policy=delete"),
        ((4, 2), {"cleanup.policy": "compact"},
         "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy "
         "being an empty list."),
        ((4, 2), {"cleanup.policy": ""}, None),
        ((3, 6), {"retention.ms": "5", "local.retention.ms": "5"}, None),
        ((3, 6), {"retention.ms": "5", "local.retention.ms": "6"},
         "Invalid value 6 for configuration local.retention.ms: Value must not be more than "
         "retention.ms property value: 5"),
        ((3, 6), {"local.retention.ms": "-1"},
         "Invalid value -1 for configuration local.retention.ms: Value must not be -1 as "
         "retention.ms value is set as 604800000."),
        ((3, 6), {"retention.ms": "-1", "local.retention.ms": "-1"}, None),
        ((3, 6), {"local.retention.bytes": "9"}, None),
        ((3, 6), {"retention.bytes": "8", "local.retention.bytes": "9"},
         "Invalid value 9 for configuration local.retention.bytes: Value must not be more than "
         "retention.bytes property value: 8"),
        ((3, 6), {"retention.bytes": "0", "local.retention.bytes": "-1"},
         "Invalid value -1 for configuration local.retention.bytes: Value must not be -1 as "
         "retention.bytes value is set as 0."),
        ((4, 4), {"local.retention.ms": "5", "remote.copy.lag.ms": "6"},
         "Invalid value 6 for configuration remote.copy.lag.ms: Value must not exceed "
         "local.retention.ms (effective value: 5)"),
        ((4, 4), {"retention.bytes": "8", "remote.copy.lag.bytes": "9"},
         "Invalid value 9 for configuration remote.copy.lag.bytes: Value must not exceed "
         "local.retention.bytes (effective value: 8)"),
        ((4, 4), {"remote.copy.lag.bytes": "9"}, None),
        ((3, 9), {"remote.log.copy.disable": "true"}, None),
        ((3, 9), {"remote.log.copy.disable": "true", "local.retention.ms": "5"},
         READ_ONLY.format("ms")),
        ((3, 9), {"remote.log.copy.disable": "true", "local.retention.bytes": "5"},
         READ_ONLY.format("bytes")),
    ],
)  # fmt: skip
def test_a_topic_with_tiered_storage_has_limits(release, settings, text):
    given = {"remote.log.storage.system.enable": "true"}
    cluster = simulated_cluster(1, topics=["foo:1:1"], broker_configs=given, release=release)
    expected = (40, text) if text else (0, None)
    configs = {"remote.storage.enable": "true", **settings}
    changes = [(name, SET, value) for name, value in configs.items()]
    assert alter(cluster, (TOPIC, "foo"), *changes) == expected
    (made,) = cluster.topics.create([NewTopic("bar", 1, 1, configs=tuple(configs.items()))])
    assert (made.error_code, made.error_message) == expected


@pytest.mark.requirement("CONFIG-16")
def test_tiered_storage_ends_with_its_data() -> None:
    given = {"remote.log.storage.system.enable": "true"}
    cluster, foo = simulated_cluster(1, topics=["foo:1:1"], broker_configs=given), (TOPIC, "foo")
    enable, off = ("remote.storage.enable", SET, "true"), ("remote.storage.enable", SET, "false")
    other, deleted = ("flush.ms", SET, "5"), ("remote.storage.enable", DELETE, None)
    assert alter(cluster, foo, enable) == (0, None)
    assert alter(cluster, foo, off) == (40, DISABLED_WITHOUT_DELETION)
    assert alter(cluster, foo, deleted) == (40, DISABLED_WITHOUT_DELETION)
    assert alter(cluster, foo, other) == (0, None)
    assert cluster.config_changes.replace([(*foo, [other])])[0].error_code == 40
    assert alter(cluster, foo, off, ("remote.log.delete.on.disable", SET, "true")) == (0, None)


@pytest.mark.requirement("CONFIG-16")
@pytest.mark.parametrize("name", ["remote.log.copy.disable", "remote.log.delete.on.disable"])
def test_controllers_with_zookeeper_keep_tiered_storage(name: str) -> None:
    cluster = simulated_cluster(1, topics=["foo:1:1"], reassignment="zookeeper", release=(3, 9))
    assert alter(cluster, (TOPIC, "foo"), (name, SET, "true")) == (
        40,
        "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` under "
        "Zookeeper's mode.",
    )


@pytest.mark.requirement("REL-17", "CONFIG-21")
@pytest.mark.parametrize(
    ("present", "value", "appended", "subtracted"),
    [
        ("", "a", ("a", "a", ",a"), ("", "", "")),
        ("a", "a,b,b", ("a,b", "a,b,b", "a,a,b,b"), ("", "", "")),
        ("a,b,a", "a", ("a,b", "a,b,a", "a,b,a,a"), ("b,a", "b,a", "b,a")),
        (",a", "", ("a,", ",a", ",a,"), ("a", "a", "a")),
        ("a", ",", ("a", "a", "a"), ("a", "a", "a")),
    ],
)
def test_lists_are_edited_in_three_ways(
    present: str, value: str, appended: tuple[str, ...], subtracted: tuple[str, ...]
) -> None:
    for expected, appends in ((appended, True), (subtracted, False)):
        found = [edit(present, value, appends=appends) for edit in LIST_EDITS.values()]
        assert found == list(expected), "as parts, as a set, as text"


@pytest.mark.requirement("CONFIG-21")
def test_the_unknown_config_that_is_named_comes_first_in_a_hash_map() -> None:
    """As Kafka 4.4.0 answered."""
    cluster = simulated_cluster(1, topics=["t:1:1"])
    (result,) = cluster.config_changes.alter_incrementally(
        [(2, "t", [("none", 0, "1"), ("", 0, "1")])]
    )
    assert result.error_message == "Unknown topic config name: "
