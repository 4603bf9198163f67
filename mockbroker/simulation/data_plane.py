"""The services of a cluster's data: logs, fetches, coordinators, groups, offsets, transactions.

Each is made here and given what it needs of the others. What they do is in ``log``, ``fetching``,
``coordinators``, ``groups`` and ``transactions``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.group_log import GroupLog
from mockbroker.simulation.coordinators.offset_store import OffsetStore
from mockbroker.simulation.coordinators.placement import Coordinators
from mockbroker.simulation.fetching.fetches import Fetches
from mockbroker.simulation.groups.all_groups import Groups
from mockbroker.simulation.groups.classic.classic_groups import ClassicGroups
from mockbroker.simulation.groups.classic.classic_settings import group_settings
from mockbroker.simulation.groups.classic.stored_groups import StoredGroups
from mockbroker.simulation.groups.consumer.consumer_groups import ConsumerGroups
from mockbroker.simulation.groups.consumer.consumer_settings import consumer_settings
from mockbroker.simulation.groups.modern.group_times import group_times
from mockbroker.simulation.groups.modern.group_topics import GroupTopics
from mockbroker.simulation.groups.share.share_fetches import ShareFetches
from mockbroker.simulation.groups.share.share_groups import ShareGroups
from mockbroker.simulation.groups.share.share_settings import share_settings, share_times
from mockbroker.simulation.groups.share.share_states import ShareStates
from mockbroker.simulation.groups.streams.streams_groups import StreamsGroups
from mockbroker.simulation.groups.streams.streams_settings import streams_settings
from mockbroker.simulation.log.cleaning.record_deletion import RecordDeletions
from mockbroker.simulation.log.logs import Logs
from mockbroker.simulation.log.producing.appender import Appender
from mockbroker.simulation.log.producing.producer_ids import ProducerIds
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.state.cluster_parts import Partition
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.transactions.markers import MarkerSender, MarkerWriter
from mockbroker.simulation.transactions.transaction_coordinators import TransactionCoordinator
from mockbroker.simulation.transactions.transaction_log import TransactionLog
from mockbroker.simulation.transactions.transaction_settings import transaction_settings
from mockbroker.simulation.transactions.transitions import Transitions
from mockbroker.simulation.transactions.verification import Verifier

__all__ = ["DataPlane"]


class DataPlane:
    """``change_partition`` changes a partition as the controller does; ``level`` returns that of a
    feature. For the others see ``Cluster``."""

    def __init__(
        self,
        controller: Controller,
        configs: EffectiveConfigs,
        release: Release,
        change_partition: Callable[[str, str, Partition], None],
        level: Callable[[str], int],
        *,
        log_bytes: int,
        data_actions: int,
        virtual_waits: bool,
        cut_last_batch: bool,
    ) -> None:
        self.logs = Logs(controller, configs, release, log_bytes, data_actions)
        """The logs of all partitions."""
        self.wait_timers = controller.timers if virtual_waits else None
        """The clock by which requests wait for records and replicas; None is real time."""
        self.coordinators = Coordinators(controller, configs, release, change_partition)
        """The brokers that coordinate groups and transactions."""
        self.deletions = RecordDeletions(controller, self.logs)
        """Deletes records at the request of clients; ``delete_records`` is the entrance."""
        self.appender = Appender(controller, self.logs)
        """Appends what producers send."""
        self.producer_ids = ProducerIds(lambda: controller.state.brokers)
        """The ids of idempotent producers."""
        self.fetches = Fetches(
            controller,
            configs,
            self.logs,
            release,
            cuts_last_batch=cut_last_batch,
        )
        """Fetch sessions, and fetches that wait."""
        self._set_up_groups(controller, configs, release)
        self._set_up_transactions(
            controller, configs, release, partial(level, "transaction.version")
        )
        self.groups.on_changed.append(lambda group_id: self.offsets.schedule_cleanup())

    def _set_up_groups(
        self, controller: Controller, configs: EffectiveConfigs, release: Release
    ) -> None:
        def first_broker() -> int:
            return next(iter(controller.state.brokers))

        classic_groups = ClassicGroups(
            controller.timers,
            release,
            lambda: group_settings(configs, first_broker()),
            has_offsets=lambda group_id: self.offsets.keeps(group_id),
        )
        group_topics = GroupTopics(controller)
        consumer_groups = ConsumerGroups(
            controller.timers,
            release,
            group_topics,
            classic_groups,
            lambda group_id: self.groups.group(group_id) is not None,
            lambda: consumer_settings(configs, first_broker()),
            lambda group_id: group_times(configs, "consumer", group_id, first_broker()),
        )
        share_groups = ShareGroups(
            controller.timers,
            release,
            group_topics,
            lambda group_id: self.groups.group(group_id) is not None,
            lambda: share_settings(configs, first_broker()),
            lambda group_id: group_times(configs, "share", group_id, first_broker()),
            classic_groups.on_changed,
            classic_groups.on_deleted,
        )
        self.share_fetches = ShareFetches(
            controller,
            self.logs,
            self.fetches,
            group_topics,
            release,
            lambda: share_settings(configs, first_broker()),
            lambda group_id: share_times(configs, group_id, first_broker()),
        )
        """The share partitions and share sessions, and fetches of them that wait."""
        self.share_states = ShareStates(controller, group_topics, self.share_fetches, release)
        """The states of share partitions, for other brokers."""
        share_groups.initialize = self.share_fetches.initialize
        share_groups.forget = self.share_fetches.forget
        share_groups.partitions_of = self.share_fetches.partitions_of
        streams_groups = StreamsGroups(
            controller.timers,
            release,
            group_topics,
            classic_groups,
            lambda group_id: self.groups.group(group_id) is not None,
            lambda group_id: streams_settings(configs, group_id, first_broker()),
        )
        self.groups = Groups(classic_groups, consumer_groups, streams_groups, share_groups)
        """The groups of all kinds."""
        self.coordinators.attach(
            CoordinatorKind.GROUP,
            lambda: self.groups.groups,
            on_unload=self.groups.unload,
            on_load=self.groups.load,
        )
        self.offsets = OffsetStore(
            controller,
            configs,
            self.coordinators,
            release,
            self.groups,
        )
        """The committed offsets of groups."""
        group_log = GroupLog(controller, self.coordinators, self.appender, release)
        self.offsets.store = group_log.store_offsets
        # The log of a group that is deleted has the deletion of its offsets first.
        self.groups.on_deleted.append(self.offsets.delete_group)
        StoredGroups(classic_groups, group_log, release)
        consumer_groups.write = streams_groups.write = group_log.store_records
        share_groups.write = group_log.store_records

    def _set_up_transactions(
        self,
        controller: Controller,
        configs: EffectiveConfigs,
        release: Release,
        level: Callable[[], int],
    ) -> None:
        coordinators = self.coordinators
        machine = Transitions(
            controller,
            TransactionLog(controller, coordinators, self.appender, level),
            self.producer_ids,
            level,
            keeps_start=release.has(facts.TRANSACTION_START_KEPT),
        )
        self.marker_writer = MarkerWriter(
            controller, self.logs, self.appender, coordinators, self.offsets
        )
        """Takes the markers that end transactions in partitions."""
        markers = MarkerSender(
            controller,
            coordinators,
            self.marker_writer,
            self.offsets.groups_with_pending,
            machine.complete,
        )
        settings = partial(transaction_settings, configs)
        self.transactions = TransactionCoordinator(
            controller, coordinators, self.logs, machine, markers, settings, release
        )
        """The transactions."""
        self.verifier = Verifier(
            controller, self.logs, coordinators, self.transactions, settings, release
        )
        """Asks whether partitions belong to transactions."""
