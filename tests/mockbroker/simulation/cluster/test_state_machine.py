"""Every command in any order, and what must hold after each of them."""

import uuid
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kproto.schema.model import ZERO_UUID
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import PartitionChanged, PartitionsAdded, TopicCreated
from mockbroker.simulation.state.cluster_state import replay
from mockbroker.simulation.state.metadata_views import MetadataView
from mockbroker.simulation.state.results import AclBinding, AclFilter, NewTopic

_BROKERS = st.integers(1, 5)
_MAYBE_BROKER = st.integers(0, 6)
_TOPICS = st.sampled_from(["foo", "bar", "a.b", "a_b", "in valid"])
_INDEXES = st.integers(-1, 3)
_REPLICAS = st.permutations([1, 2, 3, 4, 5]).flatmap(
    lambda order: st.integers(1, 4).map(lambda count: tuple(order[:count]))
)
_TARGETS = st.one_of(_REPLICAS, _REPLICAS, st.none(), st.lists(_MAYBE_BROKER, max_size=4))
_CONFIGS = st.sampled_from(
    [
        ("unclean.leader.election.enable", "true"),
        ("unclean.leader.election.enable", "maybe"),
        ("retention.ms", "1000"),
        ("cleanup.policy", "compact"),
        ("no.such.config", "1"),
        ("leader.replication.throttled.rate", "77"),
    ]
)
_ACLS = st.builds(
    AclBinding,
    resource_type=st.integers(1, 3),
    resource_name=st.sampled_from(["foo", "fo", "*", ""]),
    pattern_type=st.integers(2, 4),
    principal=st.sampled_from(["User:a", "b"]),
    host=st.just("*"),
    operation=st.integers(2, 4),
    permission_type=st.integers(2, 3),
)


class Everything(RuleBasedStateMachine):
    """Commands may be refused; the cluster may never be left in a state Kafka could not be in."""

    @initialize(
        topics=st.lists(st.sampled_from(["foo:2:3", "bar=1/2,3/5,4,3", "baz:1:1"]), unique=True)
    )
    def start(self, topics: list[str]) -> None:
        self.cluster = Cluster(5, topics=topics)
        self.held: dict[int, MetadataView] = {}
        self.epochs: dict[tuple[uuid.UUID, int], tuple[int, int]] = {}
        self.controller_epoch = 1

    def refused(self, command: Any, *arguments: Any) -> bool:
        """Whether a control raised; if so, nothing may have been logged."""
        before = len(self.cluster.log)
        try:
            command(*arguments)
        except ClusterError:
            assert len(self.cluster.log) == before
            return True
        return False

    # ---- calls -----------------------------------------------------------------------------------

    @rule(name=_TOPICS, count=st.integers(-2, 3), factor=st.integers(-2, 6), dry=st.booleans())
    def create_topic(self, name: str, count: int, factor: int, dry: bool) -> None:
        before = len(self.cluster.log)
        (result,) = self.cluster.topics.create([NewTopic(name, count, factor)], validate_only=dry)
        assert (len(self.cluster.log) > before) == (result.error_code == 0 and not dry)

    @rule(name=_TOPICS, lists=st.lists(_TARGETS, min_size=1, max_size=3))
    def create_assigned(self, name: str, lists: list[tuple[int, ...] | None]) -> None:
        assignments = tuple((i, tuple(ids or ())) for i, ids in enumerate(lists))
        self.cluster.topics.create([NewTopic(name, assignments=assignments)])

    @rule(name=_TOPICS, by_id=st.booleans())
    def delete_topic(self, name: str, by_id: bool) -> None:
        topic = self.cluster.topics.get(name)
        if by_id and topic is not None:
            (result,) = self.cluster.topics.delete([(None, topic.topic_id)])
        else:
            (result,) = self.cluster.topics.delete([(name, ZERO_UUID)])
        assert (result.error_code == 0) == (topic is not None)
        assert name not in self.cluster.topics

    @rule(name=_TOPICS, count=st.integers(0, 5), lists=st.none() | st.lists(_REPLICAS, max_size=2))
    def create_partitions(self, name: str, count: int, lists: list[tuple[int, ...]] | None) -> None:
        self.cluster.topics.add_partitions([(name, count, lists)])

    @rule(
        # Every partition once: one named twice is changed twice over, which keeps no invariant.
        asked=st.lists(
            st.tuples(
                _TOPICS,
                st.lists(st.tuples(_INDEXES, _TARGETS), max_size=3, unique_by=lambda row: row[0]),
            ),
            unique_by=lambda row: row[0],
        ),
        allow=st.booleans(),
    )
    def reassign(self, asked: list[Any], allow: bool) -> None:
        result = self.cluster.reassignments.alter(asked, allow_replication_factor_change=allow)
        assert [(t.name, [p.partition_index for p in t.partitions]) for t in result.topics] == [
            (name, [index for index, _ in partitions]) for name, partitions in asked
        ]

    @rule(
        kind=st.integers(-1, 2),
        asked=st.none()
        | st.lists(
            st.tuples(_TOPICS, st.lists(_INDEXES, unique=True)), unique_by=lambda row: row[0]
        ),
    )
    def elect(self, kind: int, asked: list[Any] | None) -> None:
        result = self.cluster.elections.elect(kind, asked)
        # KRaft finds no unknown type in a request that names no partition.
        assert (result.error_code == 42) == (kind not in (0, 1) and asked != [])

    @rule(
        resource=st.sampled_from([(2, "foo"), (2, "bar"), (4, ""), (4, "1"), (4, "9"), (7, "x")]),
        config=_CONFIGS,
        operation=st.integers(0, 4),
    )
    def alter_config(
        self, resource: tuple[int, str], config: tuple[str, str], operation: int
    ) -> None:
        name, value = config
        self.cluster.config_changes.alter_incrementally([(*resource, [(name, operation, value)])])

    @rule(binding=_ACLS)
    def create_acl(self, binding: AclBinding) -> None:
        (result,) = self.cluster.acls.create([binding])
        found = self.cluster.acls.describe(AclFilter()).bindings
        assert (binding in found) == (result.error_code == 0)

    @rule(kind=st.integers(0, 4), name=st.sampled_from(["foo", "fo", "*"]))
    def delete_acls(self, kind: int, name: str) -> None:
        wanted = AclFilter(resource_name=name, pattern_type=kind)
        (result,) = self.cluster.acls.delete([wanted])
        assert (result.error_code != 0) == (kind == 0)
        assert not self.cluster.acls.describe(wanted).bindings

    # ---- controls --------------------------------------------------------------------------------

    @rule(name=_TOPICS, index=_INDEXES, broker=_MAYBE_BROKER)
    def join_isr(self, name: str, index: int, broker: int) -> None:
        if not self.refused(Operations(self.cluster).join_isr, (name, index), broker):
            p = self.cluster.topics.partition(name, index)
            assert broker in p.isr or broker not in p.replicas  # dropped by completing

    @rule(name=_TOPICS, index=_INDEXES, broker=_MAYBE_BROKER)
    def leave_isr(self, name: str, index: int, broker: int) -> None:
        if not self.refused(Operations(self.cluster).leave_isr, (name, index), broker):
            assert broker not in self.cluster.topics.partition(name, index).isr

    @rule(broker=_MAYBE_BROKER)
    def stop_broker(self, broker: int) -> None:
        known = self.cluster.brokers.get(broker)
        refused = self.refused(Operations(self.cluster).stop_broker, broker)
        assert refused == (known is None or not known.live)

    @rule(broker=_MAYBE_BROKER)
    def start_broker(self, broker: int) -> None:
        known = self.cluster.brokers.get(broker)
        refused = self.refused(Operations(self.cluster).start_broker, broker)
        assert refused == (known is None or known.live)

    @rule(broker=_MAYBE_BROKER)
    def failover(self, broker: int) -> None:
        if not self.refused(Operations(self.cluster).failover, broker):
            assert self.cluster.state.controller_id == broker

    @rule(broker=_BROKERS)
    def hold_metadata(self, broker: int) -> None:
        view = self.cluster.controller.metadata_view(broker)
        assert self.refused(Operations(self.cluster).hold_metadata, broker) == (broker in self.held)
        self.held.setdefault(broker, view)

    @rule(broker=_BROKERS)
    def release_metadata(self, broker: int) -> None:
        assert self.refused(Operations(self.cluster).release_metadata, broker) == (
            broker not in self.held
        )
        self.held.pop(broker, None)

    @rule(interval=st.none() | st.integers(-1, 50))
    def auto_progress(self, interval: int | None) -> None:
        refused = self.refused(self.cluster.auto_progress.set_interval, interval)
        assert refused == (interval is not None and interval < 1)

    @rule(milliseconds=st.integers(-1, 200))
    def advance(self, milliseconds: int) -> None:
        before = self.cluster.timers.now_ms
        if self.refused(self.cluster.turns.advance, milliseconds):
            assert milliseconds < 0
        else:
            assert self.cluster.timers.now_ms == before + milliseconds

    # ---- what must hold --------------------------------------------------------------------------

    @invariant()
    def partitions_are_sound(self) -> None:
        live = {i for i, broker in self.cluster.brokers.items() if broker.live}
        for topic in self.cluster.topics.values():
            for index, p in enumerate(topic.partitions):
                replicas = set(p.replicas)
                assert p.index == index
                assert len(replicas) == len(p.replicas) > 0
                assert replicas <= set(self.cluster.brokers)
                assert 0 < len(p.isr) == len(set(p.isr))
                assert set(p.isr) | set(p.adding) | set(p.removing) <= replicas
                assert p.leader == -1 or p.leader in set(p.isr) & live
                # Offline only when no in-sync replica could lead.
                assert p.leader != -1 or not set(p.isr) & live
                # What could be complete is; but an unclean election comes after that was looked at.
                complete = p.target is not None and set(p.target) <= set(p.isr)
                assert not complete or (p.isr == p.target and len(p.isr) == 1)

    @invariant()
    def epochs_never_fall(self) -> None:
        now = {
            (topic.topic_id, p.index): (p.leader_epoch, p.partition_epoch)
            for topic in self.cluster.topics.values()
            for p in topic.partitions
        }
        for key, (leader_epoch, partition_epoch) in now.items():
            old_leader_epoch, old_partition_epoch = self.epochs.get(key, (0, 0))
            assert leader_epoch >= old_leader_epoch
            assert partition_epoch >= old_partition_epoch
        self.epochs = now
        assert self.cluster.state.controller_epoch >= self.controller_epoch
        self.controller_epoch = self.cluster.state.controller_epoch

    @invariant()
    def a_live_broker_is_the_controller(self) -> None:
        controller = self.cluster.brokers[self.cluster.state.controller_id]
        assert controller.live or not any(b.live for b in self.cluster.brokers.values())

    @invariant()
    def the_list_is_what_is_in_progress(self) -> None:
        listed = self.cluster.reassignments.list_ongoing(None)
        state = self.cluster.describe()["topics"]
        assert {(t.name, p.partition_index) for t in listed.topics for p in t.partitions} == {
            (name, int(index))
            for name, partitions in state.items()
            for index, p in partitions.items()
            if p["target"] is not None
        }

    @invariant()
    def views_are_current_unless_held(self) -> None:
        for broker_id in self.cluster.brokers:
            view = self.cluster.controller.metadata_view(broker_id)
            if broker_id in self.held:
                assert view == self.held[broker_id]
            else:
                assert dict(view.topics) == dict(self.cluster.topics)
                assert dict(view.brokers) == dict(self.cluster.brokers)
                assert view.offset == len(self.cluster.log)

    @invariant()
    def the_log_tells_it_all(self) -> None:
        log = self.cluster.log
        assert [action.offset for action in log] == list(range(len(log)))
        times = [action.at_ms for action in log]
        assert times == sorted(times)
        again = replay(self.cluster.state.cluster_id, log)
        assert again == self.cluster.controller.state
        assert again.topic_names == {t.topic_id: n for n, t in again.topics.items()}

    def teardown(self) -> None:
        """Each entry of a partition follows from the one before it."""
        last: dict[tuple[str, int], Any] = {}
        for action in self.cluster.log:
            match action.change:
                case TopicCreated(topic):
                    last |= {(topic.name, p.index): p for p in topic.partitions}
                case PartitionsAdded(name, partitions):
                    last |= {(name, p.index): p for p in partitions}
                case PartitionChanged(name, before, after):
                    assert before == last[name, after.index]
                    assert after.partition_epoch == before.partition_epoch + 1
                    lost = bool(set(before.replicas) - set(after.replicas))
                    bump = before.leader != after.leader or lost
                    assert after.leader_epoch == before.leader_epoch + bump
                    last[name, after.index] = after


Everything.TestCase.settings = settings(stateful_step_count=40)
TestEverything = Everything.TestCase
