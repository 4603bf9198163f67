"""What a simulated cluster is made with, beside its brokers and topics."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Final, Literal, TypeAlias

from mockbroker.simulation.releases.release import NEWEST, Release
from mockbroker.simulation.state.named_controller import CONTROLLER_RULE
from mockbroker.simulation.state.option_declarations import option
from mockbroker.simulation.state.option_types import (
    CONFIGS,
    CONFIGS_BY_BROKER,
    DELAY,
    FEATURES,
    FLAG,
    SIZE,
    choice,
    integer,
    interval,
    switch,
)

__all__ = [
    "DEFAULT_DATA_ACTIONS",
    "DEFAULT_LOG_BYTES",
    "ClusterSettings",
    "DataWaits",
    "SimulationOptions",
]

DEFAULT_LOG_BYTES: Final = 1 << 30
DEFAULT_DATA_ACTIONS: Final = 10_000

DataWaits: TypeAlias = Literal["real", "virtual"]


@dataclass(frozen=True)
class SimulationOptions:
    """What users choose. ``mockbroker.options.ClusterOptions`` adds what is not simulated."""

    _: KW_ONLY
    auto_progress_ms: int | None = option(
        None, interval(), "Let one replica join an ISR at this interval, such as 500ms.", "Time",
        json_help="The interval at which one replica joins an ISR; null for never.",
    )  # fmt: skip
    auto_retention_ms: int | None = option(
        None, interval(), "Apply retention to all logs at this interval, such as 5m.", "Time",
        json_help="The interval at which retention is applied to all logs; null for never.",
    )  # fmt: skip
    broker_configs: Mapping[str, str] = option(
        {}, CONFIGS, "Static configs of every broker, by Kafka's names.", flag="--broker-config"
    )
    own_broker_configs: Mapping[int, Mapping[str, str]] = option(
        {}, CONFIGS_BY_BROKER, "Static configs that single brokers have instead, by broker id.",
        flag="--broker-config",
    )  # fmt: skip
    features: Mapping[str, int] = option(
        {}, FEATURES, "Set the level of a feature (KIP-584) that differs from the profile's, such "
        "as transaction.version=1.", "Cluster", flag="--feature",
    )  # fmt: skip
    named_controller: str | int | None = option(
        None, CONTROLLER_RULE, "The broker that Metadata and DescribeCluster "
        "name as the controller: the controller itself, a live broker drawn for each answer, or "
        "always the same one. Default: what Kafka does, random with KRaft and leader with "
        "ZooKeeper.", "Behaviour",
    )  # fmt: skip
    seed: int = option(
        0, integer(0), "Decides on what is drawn at random, such as --named-controller random.",
        "Behaviour", json_help="Decides on what is drawn at random, such as the named controller.",
    )  # fmt: skip
    busy_elections_fail: bool = option(
        False, switch("wait", "error", on="error"), "Profile kip-183: a second concurrent election "
        "waits, or fails with error 7.", "Behaviour", flag="--busy-elections",
        json_help="Profile kip-183: a second concurrent election fails with error 7.",
    )  # fmt: skip
    ready_coordinators: bool = option(
        False, FLAG, "Answer the first FindCoordinator with the coordinator. Kafka answers it with "
        "COORDINATOR_NOT_AVAILABLE(15) while it creates the internal topic, so that clients wait "
        "and ask again. On in the fixture mock_kafka.", "Behaviour",
    )  # fmt: skip
    marker_delay_ms: int = option(
        0, DELAY, "Write the markers of a transaction this long after EndTxn is answered, for "
        "example 200ms. Until then its producer gets CONCURRENT_TRANSACTIONS(51).", "Time",
        json_help="How long after EndTxn is answered the markers of a transaction are written.",
    )  # fmt: skip
    data_waits: DataWaits = option(
        "real", choice("real", "virtual"), "virtual: long polls and produce requests wait by the "
        "simulated time, for scripted clients.", "Time",
    )  # fmt: skip
    cut_last_batch: bool = option(
        False, FLAG, "Let the limits of a fetch cut its last batch, as Kafka does. Otherwise a "
        "batch that does not fit is left out.", "Protocol",
    )  # fmt: skip
    log_bytes: int = option(
        DEFAULT_LOG_BYTES, SIZE, "The most bytes of record batches in all logs together. Past it "
        "the oldest batches of the largest log go, which the action log tells (LogStartMoved).",
        "Limits",
    )  # fmt: skip
    data_actions: int = option(
        DEFAULT_DATA_ACTIONS, integer(1), "The most events of logs, such as appends, that are kept."
        " The action log tells when the first one is dropped (DataActionsDropped).", "Limits",
    )  # fmt: skip
    zxid: int = option(
        0, integer(0, 2**63 - 1), "Start the ZooKeeper in this process at this zxid, as if it had "
        "run for long: 0x500000000 is 21474836480.", "ZooKeeper",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """What a profile decides, and how a cluster begins."""

    release: Release = NEWEST
    """The release whose configs and rules apply."""
    reassignment: str = "kraft"
    """The kind of reassignment controller, one of ``reassignment.CONTROLLERS``."""
    profile: str = ""
    """The name of the profile."""
    is_proposal: bool = False
    """Whether no release behaves like the profile."""
    elections: str | None = None
    """How ElectLeaders is answered, one of ``elections.answers.DESIGNS``; None is the one of
    ``reassignment``."""
    newest: Mapping[int, int] | None = None
    """The highest version of each request between brokers that the cluster's software knows
    (``inter_broker.software_versions``), which a broker's own ranges override; None is that of
    ``reassignment``."""
    cluster_id: str | None = None
    """None is a random one."""
    now_ms: int = 0
    """The virtual clock at the beginning."""
    new_topic_id: Callable[[], uuid.UUID] = uuid.uuid4
    """Makes the ids of topics and of client instances (KIP-714)."""
