"""The clients' requests as rules that hypothesis applies in any order to one ``World``.

A rule makes a change and checks its own answer; ``ALWAYS`` checks the general invariants after
each. ``machine_of`` returns the machine of one profile.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from fuzz.stateful import bodies, response_checks
from fuzz.stateful.controls import Controls
from fuzz.stateful.observations import (
    observe_created,
    observe_deleted,
    observe_partitions_added,
    observe_reassigned,
)
from fuzz.stateful.recovery import heal
from fuzz.stateful.strategies import ASKED, BROKER, CONFIGS, COURSE, NAME, PICK, REPLICAS, TOPICS
from fuzz.stateful.wire import Client
from fuzz.stateful.world import World
from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from mockbroker.profiles import Profile
from mockbroker.simulation.state.cluster_parts import NO_CONTROLLER
from tests.support.instances import to_instance
from tests.support.strategies import message_trees

__all__ = ["ClusterMachine", "machine_of"]

_SLOT = st.integers(0, 2)
_VERSION = st.integers(0, 15)
_PATIENCE = st.sampled_from([60_000, 60_000, 60_000, 30, 0])
_UNSERVED = st.tuples(
    st.sampled_from([3, 18, 18, 19, 45, 46, 43, 1, 99, -1]), st.sampled_from([-1, 20, 90, 32767])
)


class ClusterMachine(Controls):
    """``profile`` is the mocked broker; ``tally`` counts over all examples."""

    profile: ClassVar[Profile]
    tally: ClassVar[Counter[str]] = Counter()

    @initialize(topics=TOPICS, reply35=st.booleans())
    def start(self, topics: list[str], reply35: bool) -> None:
        self.world = World(self.profile, topics, reply35=reply35)
        self.codec = self.world.mock.dialect
        self.look()

    def look(self) -> None:
        """The same request at the start and at the end of each example."""
        for broker_id in (1, 2):
            self.ask_metadata(0, broker_id, 1, 1, 0)

    def teardown(self) -> None:
        world = getattr(self, "world", None)
        if world is None:
            return
        try:
            heal(world)
            self.finish()
            self.all_holds()
            self.look()
        finally:
            type(self).tally.update(world.fired)
            world.close()

    def finish(self) -> None:
        """What follows at the end of each example, once everything is healed."""

    # ---- requests and answers --------------------------------------------------------------------

    def client(self, slot: int, broker_id: int | None) -> Client | None:
        """Send a request to this broker, or to the controller if None."""
        world = self.world
        request = world.cluster.state.controller_id if broker_id is None else broker_id
        return None if request == NO_CONTROLLER else world.client(slot, request)

    def ask(self, name: str, client: Client | None, body: Message, version: int) -> Any:
        """Return the answer after the general checks; None if there is none or it proves nothing
        about the broker."""
        if client is None:
            return None
        world, before = self.world, self.world.facts()
        request = world.ask(client, body, version)
        if request is None:
            return None
        world.fired[name] += 1
        if request.answer is None or request.faulted:
            world.model.learn(world.cluster)  # the change may have been made anyway
        if request.faulted or world.died:
            return None
        if request.answer is None:
            unheard = request in client.waiting or not request.expected or client.spoiled
            assert unheard, f"closed without an answer to {request}"
            return None
        response_checks.refused_changes_nothing(world, before, request)
        self.before = before
        return request.answer

    # ---- requests --------------------------------------------------------------------------------

    @rule(slot=_SLOT, at=st.none() | st.none() | BROKER, request=ASKED, guarded=st.booleans(),
          version=_VERSION, wait=_PATIENCE)  # fmt: skip
    def reassign(
        self, slot: int, at: int | None, request: Any, guarded: bool, version: int, wait: int
    ) -> None:
        found = self.world.version(45, version)
        if found is None:
            return
        guarded = guarded and found >= 1
        request = list({self.pick(each): target for each, target in request}.items())
        body = bodies.reassign(self.codec, request, guarded=guarded, timeout_ms=wait)
        answer = self.ask("reassign", self.client(slot, at), body, found)
        if answer is not None:
            observe_reassigned(self.world, self.before, request, answer, guarded=guarded)

    @rule(slot=_SLOT, pick=PICK, course=COURSE, guarded=st.booleans(), version=_VERSION)
    def course(self, slot: int, pick: int, course: Any, guarded: bool, version: int) -> None:
        """Reassign one partition, and change, cancel or complete the reassignment."""
        found, tp = self.world.version(45, version), self.pick(pick)
        for target in course:
            if target == "join":
                self.join_first(tp)
            elif found is not None:
                guards = guarded and found >= 1
                body = bodies.reassign(self.codec, [(tp, target)], guarded=guards)
                answer = self.ask("course", self.client(slot, None), body, found)
                if answer is not None:
                    request = [(tp, target)]
                    observe_reassigned(self.world, self.before, request, answer, guarded=guards)
                self.all_holds()

    @rule(slot=_SLOT, at=st.none() | BROKER, version=_VERSION)
    def list_ongoing(self, slot: int, at: int | None, version: int) -> None:
        found = self.world.version(46, version)
        if found is None:
            return
        answer = self.ask("list", self.client(slot, at), bodies.listing(self.codec), found)
        plain = self.codec.name in ("kafka", "kip-860")
        if plain and answer is not None and answer.error_code == 0:
            response_checks.listing_is_the_controllers(self.world, answer)

    @rule(slot=_SLOT, at=st.none() | st.none() | BROKER, kind=st.sampled_from([0, 0, 1, 1, 2, -1]),
          request=st.none() | st.lists(PICK, min_size=1, max_size=3, unique=True),
          version=_VERSION, wait=_PATIENCE)  # fmt: skip
    def elect(
        self, slot: int, at: int | None, kind: int, request: Any, version: int, wait: int
    ) -> None:
        found = self.world.version(43, version)
        if found is not None:
            self.world.unclean_asked |= kind == 1 and found >= 1
            request = None if request is None else list(dict.fromkeys(map(self.pick, request)))
            body = bodies.elect(self.codec, found, kind, request, wait)
            self.ask("elect", self.client(slot, at), body, found)

    @rule(slot=_SLOT, at=st.none() | st.none() | BROKER, name=NAME,
          count=st.sampled_from([1, 2, 3, 0, -1]), factor=st.sampled_from([1, 2, 3, 5, 6, -1]),
          lists=st.none() | st.lists(REPLICAS, min_size=1, max_size=2),
          dry=st.booleans(), version=_VERSION, wait=_PATIENCE)  # fmt: skip
    def create_topic(
        self, slot: int, at: int | None, name: str, count: int, factor: int, lists: Any,
        dry: bool, version: int, wait: int,
    ) -> None:  # fmt: skip
        found = self.world.version(19, version)
        if found is None:
            return
        dry = dry and found >= 1
        body = bodies.create_topic(self.codec, name, count, factor, lists, dry, wait)
        answer = self.ask("create_topic", self.client(slot, at), body, found)
        if answer is not None:
            observe_created(self.world, name, len(lists) if lists else count, answer, dry=dry)

    @rule(slot=_SLOT, at=st.none() | BROKER, name=NAME, version=_VERSION, wait=_PATIENCE)
    def delete_topic(self, slot: int, at: int | None, name: str, version: int, wait: int) -> None:
        found = self.world.version(20, version)
        if found is None:
            return
        body = bodies.delete_topic(self.codec, found, name, wait)
        answer = self.ask("delete_topic", self.client(slot, at), body, found)
        if answer is not None:
            observe_deleted(self.world, name, answer)

    @rule(slot=_SLOT, name=NAME, count=st.integers(1, 5), dry=st.booleans(), version=_VERSION,
          wait=_PATIENCE)  # fmt: skip
    def create_partitions(
        self, slot: int, name: str, count: int, dry: bool, version: int, wait: int
    ) -> None:
        found = self.world.version(37, version)
        if found is None:
            return
        body = bodies.create_partitions(self.codec, name, count, dry, wait)
        answer = self.ask("create_partitions", self.client(slot, None), body, found)
        if answer is not None:
            observe_partitions_added(self.world, name, count, answer, dry=dry)

    @rule(slot=_SLOT, at=BROKER, config=CONFIGS, operation=st.sampled_from([0, 0, 0, 1, 2, 9]),
          resource=st.sampled_from([(2, "foo"), (2, "bar"), (4, ""), (4, "1"), (7, "x")]),
          version=_VERSION)  # fmt: skip
    def alter_config(
        self, slot: int, at: int, config: Any, operation: int, resource: Any, version: int
    ) -> None:
        found = self.world.version(44, version)
        if found is not None:
            body = bodies.alter_configs(self.codec, resource, config, operation)
            self.ask("alter_config", self.client(slot, at), body, found)

    @rule(slot=_SLOT, at=BROKER, version=_VERSION, times=st.integers(1, 3),
          chunk=st.sampled_from([0, 0, 3, 50]))  # fmt: skip
    def metadata(self, slot: int, at: int, version: int, times: int, chunk: int) -> None:
        """Send several requests at once; later ones use what the broker has answered before."""
        self.ask_metadata(slot, at, version, times, chunk)

    def ask_metadata(self, slot: int, at: int, version: int, times: int, chunk: int) -> None:
        client, found = self.client(slot, at), self.world.version(3, version)
        if client is None or found is None:
            return
        frames = [client.frame(bodies.metadata(self.codec, found), found) for _ in range(times)]
        self.world.send(client, frames, chunk)
        self.world.fired["metadata"] += times
        known = self.world.history.visible(at, self.world.cluster.timers.now_ms)
        for request, _ in frames:
            if request.answer is not None and not request.faulted:
                response_checks.metadata_is_what_the_broker_knows(
                    self.world, known, request.answer, found
                )

    @rule(slot=_SLOT, at=BROKER, version=_VERSION)
    def api_versions(self, slot: int, at: int, version: int) -> None:
        found = self.world.version(18, version)
        if found is None:
            return
        request: Any = self.codec.api(18).request
        named = {"client_software_name": "fuzz", "client_software_version": "1"}
        body = request(**named if found >= 3 else {})
        answer = self.ask("api_versions", self.client(slot, at), body, found)
        if answer is not None:
            response_checks.versions_are_those_served(self.world, answer, found)

    @rule(slot=_SLOT, at=BROKER, what=_UNSERVED, rest=st.binary(max_size=12))
    def unserved(self, slot: int, at: int, what: tuple[int, int], rest: bytes) -> None:
        """An unknown key or version closes the connection, except that ApiVersions is answered
        (KIP-511), and others with ``reply35``; nothing changes."""
        client, (key, version) = self.client(slot, at), what
        if client is None or client.waiting:
            return
        served, before = self.world.served(key), self.world.facts()
        request, frame = client.unserved_frame(key, version, b"\xff\xff" + rest)
        answered = bool(served) and (key == 18 or self.world.reply35)
        if answered and key != 18:
            request.version = min(max(version, served.lowest), served.highest)
        self.world.send(client, [(request, frame)])
        self.world.fired["unserved"] += 1
        assert self.world.died or self.world.facts() == before or request.faulted
        if not request.faulted and not client.spoiled:
            assert answered or not client.open, request
            if request.answer is not None:
                response_checks.says_unsupported(request)
            if key == 18 and request.answer is not None:
                response_checks.versions_are_those_served(self.world, request.answer, 0)

    @rule(slot=_SLOT, at=st.none() | BROKER, data=st.data())
    def anything(self, slot: int, at: int | None, data: st.DataObject) -> None:
        """Send any request of any served API, at any of its versions, with any values."""
        client = self.client(slot, at)
        if client is None:
            return
        pairs = [(key, version) for key, each in self.world.mock.served.items() for version in each]
        key, version = data.draw(st.sampled_from(pairs))
        cls = self.codec.api(key).request
        schema = schema_of(cls)
        body = to_instance(cls, data.draw(message_trees(schema, version)), schema)
        before = self.world.facts()
        self.world.unclean_asked |= getattr(body, "election_type", 0) == 1
        request = self.world.ask(client, body, version)
        self.world.fired["anything"] += 1
        if request is not None and request.answer is not None and not request.faulted:
            response_checks.refused_changes_nothing(self.world, before, request)
        self.world.model.learn(self.world.cluster)


def machine_of(profile: Profile) -> type[ClusterMachine]:
    """Return a new class with its own tally."""
    name = "".join(part.capitalize() for part in profile.name.replace(".", "-").split("-"))
    return type(name, (ClusterMachine,), {"profile": profile, "tally": Counter()})
