"""The simulated cluster: its parts, made in the order of their dependencies.

It has no sockets, files or messages: ids, names and lists go in,
``mockbroker.simulation.state.results`` come out. Nothing moves by itself: a replica joins the ISR
when ``join_isr`` is called, or at a tick of the virtual clock while auto-progress is on. Every
change is appended to ``log`` as a typed action, and replaying the log
(``mockbroker.simulation.state.cluster_state.replay``) gives the state again.

What a part does at the request of a client is one step of the cluster (``state.turns``). The server
decides which broker received a request, who sent it and how long it may wait, and passes time in
through ``turns.advance``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

from msgspec.structs import replace

from kproto.znodes import EmbeddedStore, ZnodeStore, ZnodeTree
from mockbroker.errors import ClusterError
from mockbroker.simulation.brokers.auto_progress import AutoProgress
from mockbroker.simulation.brokers.brokers import Brokers
from mockbroker.simulation.brokers.inter_broker.broker_memory import BrokerMemories
from mockbroker.simulation.brokers.inter_broker.software_versions import newest_of, with_versions
from mockbroker.simulation.brokers.log_dir_failures import LogDirFailures
from mockbroker.simulation.brokers.replica_lag import LaggingReplicas
from mockbroker.simulation.brokers.upgrades import Software, Upgrades
from mockbroker.simulation.clients.quotas.client_quotas import ClientQuotas
from mockbroker.simulation.clients.quotas.meters import QuotaMeters
from mockbroker.simulation.clients.quotas.throttling import Throttles
from mockbroker.simulation.clients.telemetry.receiver import Telemetry
from mockbroker.simulation.configs.answers import config_answers
from mockbroker.simulation.configs.changes import ConfigChanges
from mockbroker.simulation.configs.definitions import ConfigDefinitions, config_definitions
from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.configs.loggers import BrokerLoggers
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.group_log import GroupLog
from mockbroker.simulation.coordinators.offset_store import OffsetStore
from mockbroker.simulation.coordinators.placement import Coordinators
from mockbroker.simulation.coordinators.znode_offsets import ZnodeOffsets
from mockbroker.simulation.elections.answers import election_answers
from mockbroker.simulation.elections.auto_rebalance import AutoRebalance
from mockbroker.simulation.elections.elect import LeaderElections
from mockbroker.simulation.elections.partition_change import COMPLETION
from mockbroker.simulation.elections.queue import ElectionQueue
from mockbroker.simulation.features.feature_updates import Features
from mockbroker.simulation.features.quorum.voters import Quorum
from mockbroker.simulation.features.release_features import features_of, with_levels
from mockbroker.simulation.fetching.fetches import Fetches
from mockbroker.simulation.groups.all_groups import Groups
from mockbroker.simulation.groups.modern.group_topics import GroupTopics
from mockbroker.simulation.groups.share.share_fetches import ShareFetches
from mockbroker.simulation.groups.share.share_settings import share_settings, share_times
from mockbroker.simulation.groups.share.share_state_log import ShareStateLog
from mockbroker.simulation.groups.share.share_states import ShareStates
from mockbroker.simulation.log.cleaning.auto_retention import AutoRetention
from mockbroker.simulation.log.cleaning.record_deletion import RecordDeletions
from mockbroker.simulation.log.logs import Logs
from mockbroker.simulation.log.producing.appender import Appender
from mockbroker.simulation.log.producing.producer_ids import ProducerIds
from mockbroker.simulation.reassignment import keeps_znodes, reassignment_controller
from mockbroker.simulation.reassignment.partition_state import partition_state
from mockbroker.simulation.reassignment.reassignment_controller import Dependencies
from mockbroker.simulation.reassignment.znode_access import ZnodeAccess
from mockbroker.simulation.releases.release import CurrentRelease, Release
from mockbroker.simulation.releases.rows import Row, rows_of_release
from mockbroker.simulation.security.acls import Acls
from mockbroker.simulation.security.delegation_tokens import DelegationTokens
from mockbroker.simulation.security.scram_credentials import ScramCredentials
from mockbroker.simulation.state.actions import (
    BrokerRegistered,
    ControllerChanged,
)
from mockbroker.simulation.state.cluster_parts import LOG_DIR, NO_CONTROLLER, Broker
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.named_controller import NamedController
from mockbroker.simulation.state.settings import ClusterSettings, SimulationOptions
from mockbroker.simulation.state.timers import Timers
from mockbroker.simulation.state.turns import TakeTurn, no_wait
from mockbroker.simulation.topics.administration import Topics, fresh_cluster_id
from mockbroker.simulation.topics.answers import administration_answers
from mockbroker.simulation.topics.log_dirs import LogDirs
from mockbroker.simulation.transactions.markers import MarkerSender, MarkerWriter
from mockbroker.simulation.transactions.transaction_coordinators import TransactionCoordinator
from mockbroker.simulation.transactions.transaction_log import TransactionLog
from mockbroker.simulation.transactions.transaction_settings import transaction_settings
from mockbroker.simulation.transactions.transitions import Transitions
from mockbroker.simulation.transactions.verification import Verifier

__all__ = ["Cluster"]

_SHIPPED: Final = {"group.initial.rebalance.delay.ms": "0"}
"""What the properties file that Kafka ships sets, and rules here follow."""
_SHIPPED_WITH_KRAFT: Final = {"process.roles": "broker,controller"}

_DEFAULT_SETTINGS: Final = ClusterSettings()
_DEFAULT_OPTIONS: Final = SimulationOptions()


class Cluster:
    """N brokers, one controller, and topics. See the module's docstring for what it leaves out.

    ``brokers`` is a count (ids 1..N) or the brokers themselves; the lowest id is the controller.
    ``topics`` are texts (``parse_topic``) or (name, broker ids of each partition) pairs. If the
    kind of reassignment controller uses ZooKeeper, ``znodes`` is its session; None gives it a
    ZooKeeper of its own in this process. ``take_turn`` encloses each step; where steps may have to
    wait, it waits.

    Raises ClusterError for an invalid description.
    """

    def __init__(
        self,
        brokers: int | Iterable[Broker] = 3,
        *,
        topics: Iterable[str | tuple[str, Sequence[Sequence[int]]]] = (),
        settings: ClusterSettings = _DEFAULT_SETTINGS,
        options: SimulationOptions = _DEFAULT_OPTIONS,
        znodes: ZnodeStore | None = None,
        take_turn: TakeTurn = no_wait,
    ) -> None:
        in_zookeeper = keeps_znodes(settings.reassignment)
        design = settings.elections or ("zookeeper" if in_zookeeper else "kraft")
        initial = Software(
            settings.profile, settings.release, settings.reassignment, design, in_zookeeper,
            settings.is_proposal,
        )  # fmt: skip
        self._release = release = CurrentRelease(settings.release.number, settings.release.fixes)
        self.timers = timers = Timers(settings.now_ms)
        """The virtual clock, with the timers on it."""
        if znodes is None and in_zookeeper:
            znodes = EmbeddedStore(
                ZnodeTree(now_ms=settings.now_ms, zxid=options.zxid), lambda: timers.now_ms
            )
        newest = newest_of(settings.reassignment) if settings.newest is None else settings.newest
        self.controller = controller = Controller(
            settings.cluster_id or fresh_cluster_id(),
            options.broker_configs,
            timers,
            own_configs=options.own_broker_configs,
            store=znodes if in_zookeeper else None,
            complete_request=partial(with_versions, newest),
            take_turn=take_turn,
            reactions=lambda: self.reassignments,
        )
        """Records changes; brokers and partitions by id."""
        self.state = controller.state
        """The state of the cluster, as its controller knows it."""
        self.log = controller.log
        """The action log: everything that happened, oldest first."""
        self.turns = controller.turns
        """The steps of the cluster: whatever changes it is enclosed in one."""
        self.configs = configs = EffectiveConfigs(
            controller.state,
            config_definitions(release),
            self._definitions_of,
            _SHIPPED if in_zookeeper else _SHIPPED | _SHIPPED_WITH_KRAFT,
            release,
        )
        """The configs in effect; ``config_changes`` changes them."""
        configs.check_static()
        self.config_changes = ConfigChanges(
            controller, configs, config_answers(release, kraft=not in_zookeeper), release
        )
        """Changes the configs of topics, brokers, groups and clients' metrics."""
        self.features = Features(
            controller,
            with_levels(() if in_zookeeper else features_of(release), options.features),
            release,
            supported_by_brokers=lambda: {
                each: self.upgrades.supported(each) for each in controller.live_ids()
            },
            active_controller=lambda: self.quorum.leader_id,
        )
        """The features and their finalized levels."""
        self.quorum = Quorum(controller, self.features.level)
        """The voters of the metadata quorum."""
        self.topics = Topics(
            controller,
            administration_answers(release, kraft=not in_zookeeper),
            configs,
            self.config_changes,
            settings.new_topic_id,
        )
        """The topics by name."""

        # ---- data ----------------------------------------------------------------------------
        self.logs = logs = Logs(controller, configs, release, options)
        """The logs of all partitions."""
        self.log_dirs = LogDirs(
            controller,
            logs.replica_size,
            release,
        )
        """The log directories of brokers."""
        self.wait_timers = timers if options.data_waits == "virtual" else None
        """The clock by which requests wait for records and replicas; None is real time."""
        self.coordinators = coordinators = Coordinators(
            controller, configs, release, self.topics, ready=options.ready_coordinators
        )
        """The brokers that coordinate groups and transactions."""
        self.deletions = RecordDeletions(controller, logs)
        """Deletes records at the request of clients."""
        self.appender = Appender(controller, logs)
        """Appends what producers send."""
        self.producer_ids = ProducerIds(lambda: controller.state.brokers)
        """The ids of idempotent producers."""
        self.fetches = Fetches(controller, configs, logs, release, options)
        """Fetch sessions, and fetches that wait."""

        # ---- groups --------------------------------------------------------------------------
        group_topics = GroupTopics(controller)
        group_log = GroupLog(controller, coordinators, self.appender, release)

        def first_broker() -> int:
            return next(iter(controller.state.brokers))

        share_log = ShareStateLog(controller, configs, coordinators, self.appender, release)
        self.share_fetches = ShareFetches(
            controller,
            logs,
            self.fetches,
            group_topics,
            release,
            lambda: share_settings(configs, first_broker()),
            lambda group_id: share_times(configs, group_id, first_broker()),
            share_log,
        )
        """The share partitions and share sessions, and fetches of them that wait."""
        self.share_states = ShareStates(
            controller, group_topics, self.share_fetches, share_log, release
        )
        """The states of share partitions, for other brokers."""
        self.groups = groups = Groups(
            controller, configs, release, group_log, group_topics, self.share_fetches
        )
        """The groups of all kinds."""
        self.offsets = offsets = OffsetStore(
            controller, configs, coordinators, release, groups, group_log.store_offsets
        )
        """The committed offsets of groups."""
        coordinators.attach(
            CoordinatorKind.GROUP,
            lambda: groups.groups,
            on_unload=groups.unload,
            on_load=partial(groups.load, has_offsets=offsets.makes_group),
        )
        # The log of a group that is deleted has the deletion of its offsets first.
        groups.on_deleted.append(offsets.delete_group)
        groups.on_changed.append(lambda group_id: offsets.schedule_cleanup())
        self.znode_offsets = ZnodeOffsets(controller, offsets)
        """The offsets of consumers from before 0.9, in ZooKeeper mode."""

        # ---- transactions --------------------------------------------------------------------
        transaction_level = partial(self.features.level, "transaction.version")
        machine = Transitions(
            controller,
            TransactionLog(coordinators, self.appender, transaction_level),
            self.producer_ids,
            transaction_level,
            send_markers=lambda transaction: markers.send(transaction),
            coordinator_of=lambda transactional_id: self.transactions.leader_of(transactional_id),
            release=release,
        )
        self.marker_writer = MarkerWriter(controller, logs, self.appender, coordinators, offsets)
        """Takes the markers that end transactions in partitions."""
        markers = MarkerSender(
            controller,
            coordinators,
            self.marker_writer,
            offsets.groups_with_pending,
            machine.complete,
            options.marker_delay_ms,
        )
        transaction_configs = partial(transaction_settings, configs)
        self.transactions = TransactionCoordinator(
            controller, coordinators, logs, machine, markers, transaction_configs, release
        )
        """The transactions."""
        self.verifier = Verifier(
            logs, coordinators, self.transactions, transaction_configs, release
        )
        """Asks whether partitions belong to transactions."""

        # ---- clients and security ------------------------------------------------------------
        self.throttles = Throttles(release)
        """The clients that a tester has throttled."""
        self.quotas = ClientQuotas(controller, release)
        """The quotas of clients."""
        self.quotas.on_changed.append(lambda: self.throttles.expect_quotas(self.quotas.any))
        self.meters = QuotaMeters(
            self.quotas, lambda: timers.now_ms, release, kraft=lambda: not controller.keeps_znodes
        )
        """What clients use of their quotas."""
        self.telemetry = Telemetry(controller, configs, release, settings.new_topic_id)
        """The metrics that clients push."""
        self.acls = Acls(controller, release)
        """The access rules, which ``security.authorizer`` reads."""
        self.scram = ScramCredentials(controller, release)
        """The SCRAM credentials."""
        self.tokens = DelegationTokens(
            controller, configs, release, partial(self.features.level, "metadata.version")
        )
        """The delegation tokens."""

        # ---- brokers, elections and reassignments --------------------------------------------
        self._completion: list[Row[Any, Any]] = []
        self.elections = ElectionQueue(
            controller,
            LeaderElections(controller, election_answers(design, release), self._completion),
            busy_is_error=options.busy_elections_fail,
        )
        """Elections of leaders, and those that wait for their turn."""
        self.brokers = Brokers(controller, configs, self._completion)
        """The brokers by id."""
        self.named_controller = NamedController(options.named_controller, options.seed)
        """The broker that clients are shown as the controller."""
        self.log_dir_failures = LogDirFailures(controller, self.brokers, release)
        """Lets log directories fail."""
        self._dependencies = Dependencies(
            controller,
            configs,
            self.topics,
            self.elections,
            self.brokers,
            self.log_dir_failures,
            self._completion,
            release,
        )
        self.reassignments = reassignment_controller(settings.reassignment, self._dependencies)
        """The reassignments of partitions."""
        self.znodes = ZnodeAccess(controller, self.reassignments.name)
        """Reads znodes, in ZooKeeper mode."""
        self.auto_progress = AutoProgress(controller, self.brokers)
        """Lets replicas catch up by themselves."""
        self.memories = BrokerMemories(controller.state)
        """What each broker received from controllers since it started; not in the log."""

        self.upgrades = Upgrades(
            controller,
            release,
            initial,
            self.features,
            self._become,
            lambda: bool(self.reassignments.identities()),
        )
        """The software of each broker."""
        release.follow(self._use_release)

        # ---- the beginning -------------------------------------------------------------------
        self._register(_broker_list(brokers))
        for broker_id in options.own_broker_configs:
            controller.broker(broker_id)
        if isinstance(options.named_controller, int):
            controller.broker(options.named_controller)
        self.reassignments.start()
        for topic in topics:
            self.topics.add(topic)
        if options.auto_progress_ms is not None:
            self.auto_progress.set_interval(options.auto_progress_ms)
        if options.auto_retention_ms is not None:
            AutoRetention(controller, logs, options.auto_retention_ms)
        if configs.is_set_statically("auto.leader.rebalance.enable"):
            AutoRebalance(controller, configs, self.elections.rules)
        if configs.is_set_statically("replica.lag.time.max.ms"):
            LaggingReplicas(controller, configs, logs, self.brokers)

    def _definitions_of(self, node_id: int) -> ConfigDefinitions:
        """The configs that the release of a broker defines, or of a controller apart from them."""
        if node_id not in self.state.brokers:
            return self.configs.definitions
        return config_definitions(self.upgrades.software_of(node_id).release)

    def _become(self, software: Software) -> None:
        """Reassign partitions as other software does, with or without ZooKeeper."""
        if self.reassignments.name == software.reassignment:
            return
        self.reassignments.retire()
        self.controller.keeps_znodes = software.in_zookeeper
        self.reassignments = reassignment_controller(software.reassignment, self._dependencies)

    def _use_release(self, release: Release) -> None:
        kraft = not self.controller.keeps_znodes
        software = self.upgrades.current
        self.configs.definitions = config_definitions(release)
        self.configs.shipped = _SHIPPED | _SHIPPED_WITH_KRAFT if kraft else _SHIPPED
        self.config_changes.answers = config_answers(release, kraft=kraft)
        self.topics.answers = administration_answers(release, kraft=kraft)
        self.elections.rules.answers = election_answers(software.elections, release)
        self._completion[:] = rows_of_release(COMPLETION, release) if kraft else ()

    def _register(self, brokers: Sequence[Broker]) -> None:
        for broker in brokers:
            registered = BrokerRegistered(self._configured(broker))
            self.controller.record("start", registered)
        live = self.controller.live_ids()
        first = live[0] if live else brokers[0].broker_id
        epoch = self.reassignments.last_epoch() + 1
        self.controller.record("start", ControllerChanged(NO_CONTROLLER, first, epoch))

    def _configured(self, broker: Broker) -> Broker:
        """Return the broker with the rack and the log directories of its properties file, unless
        it has its own."""
        if broker.rack is None:
            rack = self.state.static_config(broker.broker_id, "broker.rack")
            broker = broker if rack is None else replace(broker, rack=rack)
        text = self.state.static_config(broker.broker_id, "log.dirs")
        if text is None:
            text = self.state.static_config(broker.broker_id, "log.dir")
        if text is None or broker.log_dirs != (LOG_DIR,):
            return broker
        named = tuple(dict.fromkeys(path.strip() for path in text.split(",") if path.strip()))
        if not named:
            raise ClusterError("log.dirs names no directory")
        return replace(broker, log_dirs=named)

    @cached_property
    def loggers(self) -> BrokerLoggers:
        """The loggers of brokers; not in the log."""
        return BrokerLoggers(self.controller, self._release)

    def describe(self) -> dict[str, Any]:
        """Return the object of ``mockbroker ctl URL state --json``."""
        state = self.state
        return {
            "controller": state.controller_id,
            "controller_epoch": state.controller_epoch,
            "brokers": {str(key): self._shown(broker) for key, broker in self.brokers.items()},
            "topics": {
                name: {str(p.index): partition_state(p) for p in topic.partitions}
                for name, topic in sorted(self.topics.items())
            },
        }

    def _shown(self, broker: Broker) -> Mapping[str, Any]:
        failed = self.state.replica_dirs.failed.get(broker.broker_id)
        shown: dict[str, Any] = {"live": broker.live}
        return shown if failed is None else {**shown, "failed_log_dirs": sorted(failed)}


def _broker_list(brokers: int | Iterable[Broker]) -> list[Broker]:
    if isinstance(brokers, int):
        brokers = [Broker(broker_id) for broker_id in range(1, brokers + 1)]
    listed = sorted(brokers, key=lambda broker: broker.broker_id)
    ids = [broker.broker_id for broker in listed]
    if not ids:
        raise ClusterError("a cluster needs at least one broker")
    if len(set(ids)) != len(ids) or ids[0] < 0:
        raise ClusterError(f"broker ids must be distinct and not negative, not {ids}")
    return listed
