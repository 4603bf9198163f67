"""One mock cluster under test: its brokers, clients and clock, and what clients may expect.

No socket is opened and no thread started, and time is passed in. Every action is followed by
``follow``, so that invariants are checked when everything that can happen has happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from fuzz.stateful.history import History
from fuzz.stateful.loop import VirtualLoop
from fuzz.stateful.model import Model
from fuzz.stateful.wire import Client, PendingRequest
from kproto.codec.message import Message
from kproto.dialects import has_response
from kproto.errors import UnsupportedVersionError
from kproto.journal import Entry, Journal
from kproto.messages import ProduceRequest
from kproto.schema.versions import Versions
from mockbroker import MockCluster
from mockbroker.errors import ClusterError, ControllerDiedError
from mockbroker.faults import Fault
from mockbroker.faults.matching import ActiveFault
from mockbroker.profiles import Profile
from mockbroker.serving.server import Listener
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import Action
from mockbroker.simulation.state.cluster_parts import Broker, Topic
from mockbroker.simulation.state.cluster_state import ClusterState

__all__ = ["BROKERS", "Facts", "World"]

BROKERS: Final = 5
_STATIC: Final = {"auto.create.topics.enable": "false"}
_NEVER: Final = 10**9
_UNREAD: Final = "which Kafka does not read"
"""The end of the notes on requests that follow their schemas and are refused all the same."""
"""Number of changes that means that the controller does not die."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The state that a refused request must not change."""

    offset: int
    controller: tuple[int, int]
    brokers: Mapping[int, Broker]
    topics: Mapping[str, Topic]
    configs: Mapping[tuple[int, str], Mapping[str, str]]
    acls: tuple[Any, ...]
    elections: tuple[int, ...]


class World:
    """``news`` holds the log entries of the last step. ``fired`` counts the rules that had an
    effect. ``died`` is True if the controller died in the last step. ``complaints`` are the
    journal's records of handlers and rules that raised. ``unclean_asked`` is True if a client
    requested an unclean election, which may be held later."""

    def __init__(
        self,
        profile: str | Profile,
        topics: Sequence[str],
        *,
        reply35: bool = False,
        configs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        static = {**_STATIC, **configs}
        self.loop = VirtualLoop()
        self.fired: Counter[str] = Counter()
        self.mock = MockCluster(
            BROKERS,
            profile=profile,
            topics=topics,
            clock="manual",
            reply35=reply35,
            journal=Journal(max_entries=1000, sink=self._heard),
            broker_configs=static,
        )
        self.cluster = self.mock.cluster
        self.reassignment = self.mock.profile.reassignment
        self.reply35 = reply35
        self.unclean_asked = False
        self.deaths = 0
        self.faults: list[ActiveFault] = []
        self.complaints: list[str] = []
        self._clients: dict[tuple[int, int], Client] = {}
        self.cluster.turns.on_succession.append(self._died)
        self.died = self._death = False
        self.history = History(self.cluster, static)
        self.model = Model()
        self.model.learn(self.cluster)
        self.news: Sequence[Action] = ()
        self.follow()

    @property
    def keeps_znodes(self) -> bool:
        return self.mock.profile.mode == "zk"

    @property
    def state(self) -> ClusterState:
        """The cluster's own state, to compare with the log."""
        return self.cluster.controller.state

    def served(self, api_key: int) -> Versions:
        """Return the served versions; empty for a key that this profile does not advertise."""
        return self.mock.served.get(api_key, Versions.NONE)

    def version(self, api_key: int, choice: int) -> int | None:
        """Return one of the served versions, None if there is none."""
        found = self.served(api_key)
        return found.lowest + choice % (found.highest - found.lowest + 1) if found else None

    # ---- steps -----------------------------------------------------------------------------------

    def do(self, command: Callable[..., object], *arguments: object) -> bool:
        """Take a step that the cluster may refuse, and return whether it was taken. A refused step
        leaves no trace; after one that kills the controller, its successor takes over."""
        before, refusal = len(self.cluster.log), None
        try:
            command(*arguments)
        except ControllerDiedError:
            self.follow()
            return False
        except ClusterError as error:
            refusal = error
        assert refusal is None or len(self.cluster.log) == before, f"{refusal}, but logged"
        self.follow()
        return refusal is None

    def follow(self) -> None:
        """Let everything happen that can happen now, and record the consequences."""
        hits = sum(rule.hits for rule in self.faults)
        self.loop.settle()
        if sum(rule.hits for rule in self.faults) != hits:
            self._mark_faulted()
        self._close_broken()
        late = sum(client.receive() for client in self._clients.values())
        self.died, self._death = self._death, False
        if self.died or late:
            self.model.learn(self.cluster)
        self.news = self.history.follow()

    def advance(self, milliseconds: int) -> None:
        hits = sum(rule.hits for rule in self.faults)
        self.mock.advance(milliseconds)
        self.loop.pass_time(milliseconds)
        if sum(rule.hits for rule in self.faults) != hits:
            self._mark_faulted()
        self.follow()

    def die_after(self, changes: int | None) -> None:
        Operations(self.cluster).kill_controller_after(_NEVER if changes is None else changes)

    def _died(self, broker_id: int) -> None:
        self._death = True
        self.deaths += 1

    # ---- clients ---------------------------------------------------------------------------------

    def client(self, slot: int, broker_id: int) -> Client | None:
        """Return the client's connection to this broker, opened if necessary; None if the broker is
        down."""
        if not self.cluster.controller.broker(broker_id).live:
            return None
        found = self._clients.get((slot, broker_id))
        if found is None or not found.open:
            found = Client(
                self.loop,
                self.mock.dialect,
                lambda: self.mock._make_protocol(Listener("", None), broker_id, set()),
                broker_id,
                f"client-{slot}",
            )
            self._clients[slot, broker_id] = found
        return found

    def ask(self, client: Client, body: Message, version: int) -> PendingRequest | None:
        """Send one request; None if this version cannot express it."""
        try:
            request, frame = client.frame(body, version)
        except UnsupportedVersionError:
            return None
        self.send(client, [(request, frame)])
        return request

    def send(
        self, client: Client, frames: list[tuple[PendingRequest, bytes]], chunk: int = 0
    ) -> None:
        """Send requests, and receive the answers that arrive at once."""
        for request, _ in frames:
            if request.body is not None and not has_response(request.api_key, request.body):
                request.expected = False
        hits = sum(rule.hits for rule in self.faults)
        client.put(frames, chunk)
        if sum(rule.hits for rule in self.faults) != hits:
            self._mark_faulted()
        client.receive()
        self.follow()

    def _mark_faulted(self) -> None:
        """Mark unanswered requests, as a fault rule took one of them and its effect is unknown."""
        self.model.learn(self.cluster)
        bad = any(rule.fault.name.startswith("spoil") and rule.hits for rule in self.faults)
        for client in self._clients.values():
            client.spoiled = client.spoiled or bad
            for request in client.waiting:
                request.faulted = True

    def _close_broken(self) -> None:
        """End connections whose broker stopped or closed them."""
        for key, client in list(self._clients.items()):
            if not self.cluster.controller.broker(client.broker_id).live or not client.open:
                client.receive()
                client.drop()
                del self._clients[key]

    @property
    def clients(self) -> list[Client]:
        return list(self._clients.values())

    def _heard(self, entry: Entry) -> None:
        """Exceptions of handlers and failing rules are defects, whatever the answer is. A Produce
        request may hold any bytes for batches, and brokers close the connection on some; so do
        they on values for which Kafka has no word."""
        if entry.event == "malformed" and (
            entry.api_key == ProduceRequest.API_KEY or entry.note.endswith(_UNREAD)
        ):
            return
        if entry.event in ("failed", "malformed") or entry.note.startswith("failed"):
            self.complaints.append(
                f"{entry.event} {entry.api_key} v{entry.api_version}: {entry.note}"
            )

    # ---- faults ----------------------------------------------------------------------------------

    def fault(self, fault: Fault) -> None:
        self.faults.append(self.mock.fault(fault))

    def clear_faults(self) -> None:
        self.mock.clear_faults()
        for client in self.clients:
            if client.spoiled or any(each.faulted for each in client.waiting):
                client.drop()
        self.follow()
        self.faults.clear()

    # ---- inspection ------------------------------------------------------------------------------

    def facts(self) -> Facts:
        state = self.state
        return Facts(
            len(self.cluster.log),
            (state.controller_id, state.controller_epoch),
            dict(state.brokers),
            dict(state.topics),
            {key: dict(values) for key, values in state.configs.items()},
            tuple(state.acls),
            tuple(state.elections),
        )

    def close(self) -> None:
        for client in self.clients:
            client.drop()
        self.loop.shut()
