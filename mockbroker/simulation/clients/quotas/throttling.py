"""Clients that a tester or a quota throttles (KIP-219).

Since Kafka 2.0 the answer comes at once, its throttle time says how long the client shall wait, and
the broker reads nothing more of the connection for as long. Before, the answer itself comes so much
later. This module decides; ``serving.throttle_stage`` waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from mockbroker.errors import ClusterError
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row, always, apply_first, rows_of_release

__all__ = ["THROTTLE_ROWS", "Throttle", "Throttles"]

_LONGEST_MS: Final = 2**31 - 1


class Throttle(msgspec.Struct):
    """How a client is throttled: for how long, and what the release makes of that."""

    milliseconds: int
    mutes: bool = False
    """Whether the answer comes at once and the connection is muted after it; otherwise the answer
    comes late."""
    empties_fetches: bool = False
    """Whether a fetch is answered without partitions; the next one of the connection, after the
    wait, has the records."""


def mute_connection(subject: Throttle) -> None:
    """Answer at once, and read nothing more for the throttle time."""
    subject.mutes = True


def empty_fetches(subject: Throttle) -> None:
    """Answer a fetch without partitions; its session goes on."""
    subject.empties_fetches = True


THROTTLE_ROWS: Final[Sequence[Row[Throttle, Throttle]]] = (
    Row(
        "DP-CTL-37 DP-PRODUCE-43 DP-FETCH-21 QUOTA-14",
        always,
        (mute_connection, empty_fetches),
        since=(2, 0),
    ),
)


class Throttles:
    """The throttled clients of one cluster, by client id. ``on_live`` is called when ``live`` has
    changed."""

    def __init__(self, release: Release) -> None:
        self.live = False
        """Whether any client is throttled, or may be because there are quotas."""
        self.on_live: list[Callable[[], None]] = []
        release.follow(self._use_release)
        self._clients: dict[str, Throttle] = {}
        self._quotas = False

    def _use_release(self, release: Release) -> None:
        self._rows = rows_of_release(THROTTLE_ROWS, release)

    def set(self, client_id: str, milliseconds: int) -> None:
        """Throttle every answer to a client; 0 ends it. Raises ClusterError."""
        if not 0 <= milliseconds <= _LONGEST_MS:
            raise ClusterError(f"a throttle time is 0 to {_LONGEST_MS} ms, not {milliseconds} ms")
        if milliseconds:
            self._clients[client_id] = self.lasting(milliseconds)
        else:
            self._clients.pop(client_id, None)
        self._refresh()

    def expect_quotas(self, expected: bool) -> None:
        """Note whether there are quotas."""
        self._quotas = expected
        self._refresh()

    def lasting(self, milliseconds: int) -> Throttle:
        """Return what this release makes of a throttle time."""
        throttle = Throttle(min(milliseconds, _LONGEST_MS))
        apply_first(self._rows, throttle, throttle)
        return throttle

    def _refresh(self) -> None:
        live = self._quotas or bool(self._clients)
        if self.live != live:
            self.live = live
            for call in self.on_live:
                call()

    def of(self, client_id: str | None) -> Throttle | None:
        """How a client is throttled; None if it is not."""
        return self._clients.get(client_id or "")
