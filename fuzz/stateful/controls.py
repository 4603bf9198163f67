"""Rules that change the cluster from outside its clients: replicas catch up and fall behind,
brokers stop and start, controllers move and die, time passes, znodes are written, and fault rules
come and go. ``machine`` adds the clients."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fuzz.stateful import response_checks
from fuzz.stateful.invariants import ALWAYS
from fuzz.stateful.strategies import (
    BROKER,
    FAULTS,
    MISSING,
    NAME,
    PICK,
    PLANS,
    SWITCHES,
    znode_text,
)
from fuzz.stateful.world import World
from kproto.znodes.plan_znodes import delete_topic_path
from kproto.znodes.request_znodes import REQUEST_PREFIX
from mockbroker.faults import Fault
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_parts import NO_LEADER

__all__ = ["Controls"]


class Controls(RuleBasedStateMachine):
    """``world`` exists once the machine has started."""

    world: World

    @invariant()
    def all_holds(self) -> None:
        world = getattr(self, "world", None)
        if world is not None:
            world.fired["steps"] += 1
            for holds in ALWAYS:
                holds(world)

    # ---- replicas, brokers, time -----------------------------------------------------------------

    def pick(self, number: int) -> tuple[str, int]:
        """Return an existing partition, unless the last number is picked."""
        topics = sorted(self.world.cluster.topics.items())
        known = [(name, each.index) for name, topic in topics for each in topic.partitions]
        return known[number % len(known)] if known and number < 11 else MISSING

    @rule(pick=PICK, broker=BROKER)
    def join_isr(self, pick: int, broker: int) -> None:
        self.step("join_isr", Operations(self.world.cluster).join_isr, self.pick(pick), broker)

    @rule(number=st.integers(0, 11), count=st.integers(1, 4))
    def catch_up(self, number: int, count: int) -> None:
        """Let the next replicas of a partition that has lagging ones join the ISR."""
        for _ in range(count):
            late = self.lagging()
            if late:
                self.step(
                    "catch_up", Operations(self.world.cluster).join_isr, *late[number % len(late)]
                )
                self.all_holds()

    def lagging(self) -> list[tuple[tuple[str, int], int]]:
        """Return replicas that could join, those of reassignments first, as (partition, broker)."""
        cluster = self.world.cluster
        going = [
            (not each.reassigning, (name, each.index), broker)
            for name, topic in sorted(cluster.topics.items())
            for each in topic.partitions
            for broker in each.target or each.replicas
            if broker not in each.isr
            and cluster.brokers[broker].live
            and not cluster.state.replica_dirs.is_failed(broker, (name, each.index))
        ]
        first = sorted(going, key=lambda each: each[0])
        return [(tp, broker) for _, tp, broker in first]

    def join_first(self, tp: tuple[str, int]) -> None:
        late = [broker for each, broker in self.lagging() if each == tp]
        if late:
            self.step("catch_up", Operations(self.world.cluster).join_isr, tp, late[0])
            self.all_holds()

    @rule(pick=PICK, which=st.integers(0, 3))
    def leave_isr(self, pick: int, which: int) -> None:
        tp = self.pick(pick)
        if tp != MISSING:
            isr = self.world.cluster.topics.partition(*tp).isr
            self.step(
                "leave_isr",
                Operations(self.world.cluster).leave_isr,
                tp,
                isr[-1 - which % len(isr)],
            )

    @rule(broker=BROKER)
    def stop_broker(self, broker: int) -> None:
        self.world.model.stopped(broker)
        if not self.step("stop_broker", Operations(self.world.cluster).stop_broker, broker):
            assert self.world.died or broker not in self.world.model.live

    @rule(pick=PICK)
    def lose_leader(self, pick: int) -> None:
        """Let a broker's followers fall behind, and then stop it."""
        tp, cluster = self.pick(pick), self.world.cluster
        if tp == MISSING or cluster.topics.partition(*tp).leader == NO_LEADER:
            return
        partition = cluster.topics.partition(*tp)
        for broker in partition.isr:
            if broker != partition.leader:
                self.step("leave_isr", Operations(cluster).leave_isr, tp, broker)
                self.all_holds()
        self.stop_broker(partition.leader)

    @rule(broker=BROKER)
    def start_broker(self, broker: int) -> None:
        """Return a stopped broker, if there is one."""
        stopped = sorted({1, 2, 3, 4, 5} - self.world.model.live)
        if not stopped:
            return
        broker = stopped[broker % len(stopped)]
        self.world.model.started(broker)
        self.step("start_broker", Operations(self.world.cluster).start_broker, broker)

    @rule(to=BROKER)
    def failover(self, to: int) -> None:
        world = self.world
        before = world.facts()
        if to in world.model.live:
            world.model.controller = to
        if self.step("failover", Operations(world.cluster).failover, to):
            response_checks.reassignments_survive(world, before)

    @rule(changes=st.integers(0, 12))
    def die_after(self, changes: int) -> None:
        """Make the controller die in the middle of one of the next commands."""
        self.world.die_after(changes)
        self.world.fired["die_after"] += 1

    @rule(broker=BROKER)
    def hold_metadata(self, broker: int) -> None:
        history = self.world.history
        known = history.visible(broker, self.world.cluster.timers.now_ms)
        if broker not in history.held and self.control(
            "hold_metadata", Operations(self.world.cluster).hold_metadata, broker
        ):
            history.hold(broker, known)

    @rule(broker=BROKER)
    def release_metadata(self, broker: int) -> None:
        history = self.world.history
        if broker in history.held and self.control(
            "release_metadata", Operations(self.world.cluster).release_metadata, broker
        ):
            history.release(broker)

    @rule(delay=st.sampled_from([0, 1, 20, 50]))
    def propagation(self, delay: int) -> None:
        known = self.world.history.arrived(self.world.cluster.timers.now_ms)
        if self.control("propagation", Operations(self.world.cluster).set_propagation, delay):
            self.world.history.delay(delay, known)

    @rule(held=st.booleans())
    def elections(self, held: bool) -> None:
        cluster = self.world.cluster
        self.step(
            "elections",
            Operations(cluster).hold_elections if held else Operations(cluster).release_elections,
        )

    @rule(interval=st.none() | st.integers(1, 40))
    def auto_progress(self, interval: int | None) -> None:
        self.control("auto_progress", self.world.cluster.auto_progress.set_interval, interval)

    @rule(milliseconds=st.integers(1, 100))
    def advance(self, milliseconds: int) -> None:
        self.step("advance", self.world.advance, milliseconds)

    # ---- znodes ----------------------------------------------------------------------------------

    @rule(path=st.sampled_from(SWITCHES), plan=PLANS)
    def ask_by_znode(self, path: str, plan: dict[int, list[int]]) -> None:
        self.write(path, znode_text(path, {self.pick(each): ids for each, ids in plan.items()}))

    @rule(path=st.sampled_from(SWITCHES), text=st.sampled_from([None, None, "", "{", "no plan"]))
    def write_znode(self, path: str, text: str | None) -> None:
        self.write(path, text)

    @rule(name=NAME)
    def delete_by_znode(self, name: str) -> None:
        if self.world.keeps_znodes and "/" not in name:
            self.write(delete_topic_path(name), "")

    def write(self, path: str, text: str | None) -> None:
        """Write a znode like any ZooKeeper client; the outcome is not predicted."""
        world = self.world
        if not world.keeps_znodes:
            return
        if path == REQUEST_PREFIX:
            self.step("znode", Operations(world.cluster).append_znode, path, text or "")
        else:
            self.step("znode", Operations(world.cluster).write_znode, path, text)
        world.model.learn(world.cluster)

    # ---- faults ----------------------------------------------------------------------------------

    @rule(fault=FAULTS, clear=st.booleans())
    def fault(self, fault: Fault, clear: bool) -> None:
        """Add a fault rule, or remove all."""
        if clear:
            self.world.clear_faults()
            self.world.fired["clear_faults"] += 1
        else:
            self.step("fault", self.world.fault, fault)

    # ---- steps -----------------------------------------------------------------------------------

    def step(self, name: str, command: Any, *arguments: Any) -> bool:
        done = self.world.do(command, *arguments)
        self.world.fired[name if done else f"{name} (refused)"] += 1
        return done

    def control(self, name: str, command: Any, *arguments: Any) -> bool:
        """Take a step that cannot be refused here, unless the controller dies of it."""
        done = self.step(name, command, *arguments)
        assert done or self.world.died, name
        return done
