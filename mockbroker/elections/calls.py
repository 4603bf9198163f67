"""What clients of a simulated cluster can ask about elections (43): ``Cluster`` is this, too.

Who is elected and what is said is for ``elect``, when it is said for ``queue``.
"""

from __future__ import annotations

from mockbroker.controls import Controls
from mockbroker.elections.elect import Wanted, refused, unknown_type
from mockbroker.elections.queue import StartedElection
from mockbroker.state.results import ElectLeadersResult

__all__ = ["ElectionCalls"]


class ElectionCalls(Controls):
    def elect_leaders(self, election_type: int, topics: Wanted | None) -> ElectLeadersResult:
        """``election_type`` 0 is preferred, 1 unclean; None means every partition. Waits for
        nothing: what the controller is not at once seen to have done is answered 7."""
        started = self.start_election(election_type, topics, timeout_ms=0)
        assert started.result is not None, "no time is left"
        return started.result

    def start_election(
        self,
        election_type: int,
        topics: Wanted | None,
        *,
        broker_id: int | None = None,
        timeout_ms: int = 60_000,
    ) -> StartedElection:
        """As ``elect_leaders``, but the result may come later, once the broker that was asked (the
        controller, if None) shows the new leaders, or ``timeout_ms`` of the virtual clock passed.
        """
        queue = self._controller.elections
        refusal = self.unknown_election_type(election_type, topics)
        if refusal is not None:
            return StartedElection.refused(refusal)
        asked = self._state.controller_id if broker_id is None else broker_id
        wanted = topics if topics is not None else self._every_partition(asked)
        with self._acting(by_controller=True):
            started = queue.start(election_type, wanted, topics is None, asked, timeout_ms)
        return started

    def unknown_election_type(
        self, election_type: int, topics: Wanted | None
    ) -> ElectLeadersResult | None:
        """The refusal of an election type that does not exist; None for one that does."""
        return unknown_type(self._controller.elections.era, election_type, topics)

    def refused_elections(
        self, topics: Wanted | None, broker_id: int, code: int
    ) -> ElectLeadersResult:
        """What this broker answers where it will not even try: the code at every partition."""
        wanted = self._every_partition(broker_id) if topics is None else topics
        return refused(self._controller.elections.era, wanted, code)

    def withdraw_election(self, started: StartedElection) -> None:
        """Its caller is gone: one that waits for its turn is not held any more."""
        self._controller.elections.withdraw(started)

    def _every_partition(self, broker_id: int) -> Wanted:
        """As far as the broker knows that was asked; KRaft's passes the question on."""
        if self._controller.elections.era.queued:
            known = self._state.view(broker_id, self._controller.now_ms).topics
        else:
            known = self._state.topics
        return [(name, range(len(topic.partitions))) for name, topic in sorted(known.items())]
