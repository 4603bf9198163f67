"""Sessions over DescribeConfigs (32) and IncrementalAlterConfigs (44)."""

from __future__ import annotations

from dataclasses import replace

from mockbroker.simulation.state.cluster_state import GROUP
from tests.real.sessions.registry import session
from tests.real.steps import (
    APPEND,
    BROKER,
    DELETE,
    SET,
    SUBTRACT,
    TOPIC,
    Rounds,
    change,
    create,
    describe,
)

# ---- 32 DescribeConfigs ----------------------------------------------------------------------


@session(32)
def configs_of_a_topic(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1], retention_ms="1000", cleanup_policy="compact"),
            describe((TOPIC, t), names=["retention.ms", "cleanup.policy", "no.such"]),
            replace(describe((TOPIC, t)), eventually=False),
            describe((TOPIC, t), names=["segment.bytes"], broker_id=3),
            replace(describe((TOPIC, t), names=[]), eventually=False),
        ]
    )


@session(32, since=1)
def config_synonyms(t: str) -> Rounds:
    every = replace(describe((TOPIC, t), synonyms=True), eventually=False)
    one = describe((TOPIC, t), names=["retention.ms"], synonyms=True)
    return Rounds([create(t, [1], retention_ms="5"), one, every])


@session(32)
def configs_of_nothing(t: str) -> Rounds:
    return Rounds(
        [
            describe((TOPIC, f"{t}-unknown")),
            describe((TOPIC, "")),
            describe((TOPIC, "a b")),
            describe((BROKER, "x")),
            describe((BROKER, "2"), names=["num.io.threads"]),
            describe((BROKER, "9")),
            describe((BROKER, "")),
            describe(),
        ]
    )


@session(32, since=1)
def configs_of_a_broker(t: str) -> Rounds:
    names = ["num.io.threads", "auto.create.topics.enable", "num.partitions", "log.retention.ms"]
    return Rounds(
        [
            describe((BROKER, "1"), names=names),
            describe((BROKER, "3"), names=names, synonyms=True, broker_id=3),
        ]
    )


# ---- 44 IncrementalAlterConfigs --------------------------------------------------------------


@session(44)
def config_set_and_deleted(t: str) -> Rounds:
    name = "retention.ms"
    return Rounds(
        [
            create(t, [1]),
            change((TOPIC, t, [(name, SET, "7")])),
            describe((TOPIC, t), names=[name], synonyms=True),
            change((TOPIC, t, [(name, SET, "8")]), validate_only=True),
            describe((TOPIC, t), names=[name]),
            change((TOPIC, t, [(name, DELETE, None)])),
            describe((TOPIC, t), names=[name]),
            change((TOPIC, t, [(name, DELETE, None)])),
            change((TOPIC, t, [])),
        ]
    )


@session(44)
def config_lists(t: str) -> Rounds:
    policy = "cleanup.policy"
    replicas = "leader.replication.throttled.replicas"
    return Rounds(
        [
            create(t, [1]),
            change((TOPIC, t, [(policy, APPEND, "compact")])),
            describe((TOPIC, t), names=[policy]),
            change((TOPIC, t, [(policy, SUBTRACT, "delete")])),
            describe((TOPIC, t), names=[policy]),
            change((TOPIC, t, [(replicas, SET, "0:1,0:2")])),
            change((TOPIC, t, [(replicas, APPEND, "0:2,0:3")])),
            describe((TOPIC, t), names=[replicas]),
            change((TOPIC, t, [(replicas, SET, "*")])),
            describe((TOPIC, t), names=[replicas]),
        ]
    )


@session(44)
def config_refusals(t: str) -> Rounds:
    name = "retention.ms"
    return Rounds(
        [
            create(t, [1]),
            change((TOPIC, t, [(name, SET, "soon")])),
            change((TOPIC, t, [(name, SET, "-2")])),
            change((TOPIC, t, [("no.such.config", SET, "1")])),
            change((TOPIC, t, [(name, APPEND, "1")])),
            change((TOPIC, t, [(name, SET, None)])),
            change((TOPIC, t, [(name, SET, "1"), (name, SET, "2")])),
            change((TOPIC, t, [(name, 9, "1")])),
            change((TOPIC, f"{t}-unknown", [(name, SET, "1")])),
            change((TOPIC, "a b", [(name, SET, "1")])),
            change((TOPIC, t, [(name, SET, "1")]), (TOPIC, t, [(name, SET, "2")])),
            change((TOPIC, f"{t}-unknown", [(name, SET, "1")]), (TOPIC, t, [(name, SET, "3")])),
            change((BROKER, "x", [("num.io.threads", SET, "2")])),
            change((BROKER, "1", [("node.id", SET, "2")])),
            change(),
            describe((TOPIC, t), names=[name]),
        ]
    )


@session(44)
def config_more_refusals(t: str) -> Rounds:
    name, lists = "retention.ms", "cleanup.policy"
    return Rounds(
        [
            create(t, [1]),
            change((TOPIC, t, [(name, SET, None), ("segment.ms", APPEND, None)])),
            change((TOPIC, t, [(name, SUBTRACT, "1")])),
            change((TOPIC, t, [(lists, SET, "compact,none")])),
            change((TOPIC, t, [(lists, APPEND, "none")])),
            change((TOPIC, t, [("compression.type", SET, "zip")])),
            change((TOPIC, t, [("min.insync.replicas", SET, "0")])),
            change((TOPIC, t, [("preallocate", SET, "maybe")])),
            change((TOPIC, t, [("min.cleanable.dirty.ratio", SET, "2")])),
            change((TOPIC, t, [("segment.bytes", SET, "13")])),
            change((TOPIC, t, [("leader.replication.throttled.replicas", SET, "0-1")])),
            change((TOPIC, t, [(name, SET, "1"), ("no.such.config", SET, "1")])),
            change((TOPIC, f"{t}-unknown", [(name, APPEND, "1")])),
            change((TOPIC, "", [(name, SET, "1")])),
            change((TOPIC, t, [(name, SET, " 5 ")])),
            describe((TOPIC, t), names=[name, lists]),
            change((3, "x", [(name, SET, "1")])),
            change((BROKER, "2", [("num.io.threads", SET, "2")])),
            change((BROKER, "2", [("num.io.threads", SET, "2")]), broker_id=2, validate_only=True),
            change((BROKER, "1", [("num.io.threads", SET, "many")])),
            change((BROKER, "1", [("num.io.threads", APPEND, "1")])),
            change((BROKER, "1", [("log.dirs", SET, "/x"), ("broker.rack", SET, "r")])),
        ]
    )


@session(44)
def config_values(t: str) -> Rounds:
    """White space, durations, formats, and what needs tiered storage."""
    start = "share.auto.offset.reset"
    return Rounds(
        [
            create(t, [1]),
            change((TOPIC, t, [("retention.ms", SET, " x ")])),
            change((TOPIC, t, [("compression.type", SET, " x ")])),
            change((TOPIC, t, [("compression.type", SET, " gzip ")])),
            change((TOPIC, t, [("min.cleanable.dirty.ratio", SET, "NaN")])),
            change((TOPIC, t, [("message.format.version", SET, "2.1-IV9")])),
            change((TOPIC, t, [("remote.storage.enable", SET, "true")])),
            *(
                change((GROUP, t, [(start, SET, value)]))
                for value in ("a:b", "", "by_duration:PT1H-90M", "by_duration:pt1h")
            ),
            describe((TOPIC, t), names=["compression.type"]),
        ]
    )


@session(44)
def config_refusals_of_brokers(t: str) -> Rounds:
    """Threads change to half or to double of what they are; some configs are of one broker, some of
    one listener."""
    changes = (
        ("num.io.threads", SET, "5"),
        ("max.connections", SET, "0"),
        ("log.retention.ms", SET, "0"),
        ("max.connections.per.ip.overrides", SET, "a:1,bb"),
        ("log.cleaner.threads", SET, "0"),
        ("ssl.keystore.type", SET, "x"),
        ("sasl.enabled.mechanisms", SET, "PLAIN"),
        ("cordoned.log.dirs", SET, "/x"),
        ("broker.rack", DELETE, ""),
        ("no.such.config", APPEND, "x"),
        ("num.io.threads", 4, "5"),
    )
    return Rounds(
        [
            change((BROKER, name, [each]), validate_only=True)
            for each in changes
            for name in ("", "1")
        ]
    )


@session(44)
def config_of_a_broker(t: str) -> Rounds:
    """A dynamic one, which hides the static one, and is a topic's default."""
    names = ["log.retention.bytes", "background.threads"]
    ours = ["retention.bytes"]
    return Rounds(
        [
            create(t, [1]),
            change((BROKER, "3", [("log.retention.bytes", SET, "77")]), broker_id=3),
            describe((BROKER, "3"), names=names, synonyms=True, broker_id=3),
            describe((TOPIC, t), names=ours, synonyms=True, broker_id=3),
            describe((TOPIC, t), names=ours, synonyms=True),
            change((BROKER, "", [("log.retention.bytes", SET, "78")])),
            describe((BROKER, "3"), names=names, synonyms=True, broker_id=3),
            describe((BROKER, ""), synonyms=True),
            describe((TOPIC, t), names=ours, synonyms=True, broker_id=2),
            change((BROKER, "", [("log.retention.bytes", DELETE, "")])),
            change((BROKER, "3", [("log.retention.bytes", DELETE, "")]), broker_id=3),
            describe((BROKER, "3"), names=names, synonyms=True, broker_id=3),
        ]
    )


@session(44)
def config_throttles(t: str) -> Rounds:
    """What a reassignment tool does: a rate on a broker, and takes it off again."""
    rate = "leader.replication.throttled.rate"
    return Rounds(
        [
            change((BROKER, "1", [(rate, SET, "1000000")])),
            describe((BROKER, "1"), names=[rate]),
            change((BROKER, "1", [(rate, DELETE, "")])),
            describe((BROKER, "1"), names=[rate]),
            change((BROKER, "", [(rate, SET, "5")])),
            describe((BROKER, "")),
            change((BROKER, "", [(rate, DELETE, "")])),
            describe((BROKER, "")),
        ]
    )
