"""What a cluster holds for clients, within the limits of its options.

Kafka's names for them are ``socket.request.max.bytes``, ``max.connections``,
``queued.max.request.bytes``, ``connections.max.idle.ms`` and ``sasl.server.max.receive.size``. Some
defaults are lower than Kafka's, because a mock shares its machine with the tests. A broker config
that is set takes the place of the option.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Final, Protocol

from mockbroker.options import DEFAULT_LIMITS, Limits
from mockbroker.simulation.configs.effective import EffectiveConfigs

__all__ = ["MAX_BEFORE_SASL", "Admission", "BufferBudget", "idle_timeout_ms", "max_frame_bytes"]

MAX_BEFORE_SASL: Final = 512 * 1024
"""The largest frame before authentication: the default of ``sasl.server.max.receive.size`` since
Kafka 3.4."""


class BufferBudget:
    """Accounts for ``max_buffered_bytes`` by connection."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.held = 0
        self._holders: dict[Hashable, int] = {}

    def hold(self, holder: Hashable, size: int) -> Hashable | None:
        """Note that ``holder`` buffers ``size`` bytes. Returns the holder of most bytes if the
        budget is exceeded, None otherwise."""
        self.held += size - self._holders.pop(holder, 0)
        if size:
            self._holders[holder] = size
        if self.held <= self.limits.max_buffered_bytes:
            return None
        return max(self._holders, key=self._holders.__getitem__)


def idle_timeout_ms(configs: EffectiveConfigs, broker_id: int, limits: Limits) -> int | None:
    """How long a client of a broker may be silent; None without a limit."""
    text = configs.value_set(broker_id, "connections.max.idle.ms")
    if text is None:
        return limits.idle_timeout_ms
    return None if int(text) < 0 else max(int(text), 1)


def max_frame_bytes(configs: EffectiveConfigs, broker_id: int, limits: Limits) -> int:
    """The largest request to a broker."""
    text = configs.value_set(broker_id, "socket.request.max.bytes")
    return limits.max_frame_bytes if text is None else int(text)


_LOCALHOST: Final = {"localhost": ("127.0.0.1", "::1")}
"""The one host that is known by its name; Kafka resolves all of them."""


class Applicant(Protocol):
    """A connection that a broker accepted."""

    @property
    def address(self) -> str:
        """The client's address."""
        raise NotImplementedError

    def admitted(self, refusal: str | None) -> None:
        """The connection has waited, and is served now, or closed for the reason given."""
        raise NotImplementedError


class Admission:
    """Which connections a broker serves, by the configs that it follows at that time.

    As in Kafka, a connection past ``max.connections`` waits until another one ends, and one past
    ``max.connections.per.ip``, or the override of its address, is closed.
    """

    def __init__(self, configs: EffectiveConfigs, broker_id: int) -> None:
        self._configs = configs
        self._broker_id = broker_id
        self._served: dict[Applicant, str] = {}
        self._waiting: deque[Applicant] = deque()

    def enter(self, connection: Applicant) -> bool:
        """Return whether the connection has to wait; otherwise it has been admitted or refused."""
        if self._waiting or not self._has_room():
            self._waiting.append(connection)
            return True
        connection.admitted(self._take(connection))
        return False

    def leave(self, connection: Applicant) -> None:
        """A connection has ended, and others have their turn."""
        if self._served.pop(connection, None) is None and connection in self._waiting:
            self._waiting.remove(connection)
        while self._waiting and self._has_room():
            waiting = self._waiting.popleft()
            waiting.admitted(self._take(waiting))

    def _has_room(self) -> bool:
        most = self._configs.value_set(self._broker_id, "max.connections")
        return most is None or len(self._served) < int(most)

    def _take(self, connection: Applicant) -> str | None:
        """Serve a connection, or return why it is refused."""
        address = connection.address
        most = self._most_from(address)
        if most is not None:
            present = sum(each == address for each in self._served.values())
            if present >= most:
                return f"{address} has {present} connections; the broker accepts {most}"
        self._served[connection] = address
        return None

    def _most_from(self, address: str) -> int | None:
        overrides = self._configs.value_set(self._broker_id, "max.connections.per.ip.overrides")
        for pair in (overrides or "").split(","):
            host, _, most = pair.strip().rpartition(":")
            if host and address in (host, *_LOCALHOST.get(host, ())):
                return int(most)
        text = self._configs.value_set(self._broker_id, "max.connections.per.ip")
        return None if text is None else int(text)
