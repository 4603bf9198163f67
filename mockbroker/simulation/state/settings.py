"""What a simulated cluster is made with, beside its brokers and topics."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, Literal, TypeAlias

from mockbroker.simulation.releases.release import NEWEST, Release

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


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """What users choose. ``mockbroker.options.ClusterOptions`` adds what is not simulated."""

    _: KW_ONLY
    auto_progress_ms: int | None = None
    """The interval at which one replica joins an ISR; None for never."""
    broker_configs: Mapping[str, str] = field(default_factory=dict)
    """Static configs of every broker, by Kafka's names."""
    own_broker_configs: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Static configs that single brokers have instead, by broker id."""
    features: Mapping[str, int] = field(default_factory=dict)
    """Levels of features (KIP-584) that differ from the profile's, such as
    ``{"transaction.version": 1}``."""
    busy_elections_fail: bool = False
    """KIP-183: whether an election fails with error 7 while another one waits in the queue."""
    log_bytes: int = DEFAULT_LOG_BYTES
    """The most bytes of record batches in all logs together. Past it the oldest batches of the
    largest log go, which the action log tells (LogStartMoved)."""
    data_actions: int = DEFAULT_DATA_ACTIONS
    """The most events of logs, such as appends, that are kept. The action log tells when the first
    one is dropped (DataActionsDropped)."""
    auto_retention_ms: int | None = None
    """The interval at which retention is applied to all logs; None for never."""
    data_waits: DataWaits = "real"
    """How long polls and produce requests wait: ``real`` is the client's time, ``virtual`` the
    simulated time, for scripted clients."""
    cut_last_batch: bool = False
    """Whether the limits of a fetch may cut its last batch, as Kafka does. Otherwise a batch that
    does not fit is left out."""
    zxid: int = 0
    """The last transaction id before the cluster's first, in a store in this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """What a profile decides, and how a cluster begins."""

    release: Release = NEWEST
    """The release whose configs and rules apply."""
    reassignment: str = "kraft"
    """The kind of reassignment controller, one of ``reassignment.CONTROLLERS``."""
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
    """Makes topic ids."""
