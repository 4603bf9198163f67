"""What each broker of a cluster runs: its release, and the versions that it serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from kproto.schema.versions import Versions
from mockbroker.profiles import Profile, profile, with_fixes
from mockbroker.simulation.brokers.inter_broker.software_versions import (
    INTER_BROKER,
    own_apis,
    served_by,
)
from mockbroker.simulation.brokers.upgrades import Software
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.reassignment import keeps_znodes

__all__ = ["BrokerSoftware"]


class BrokerSoftware:
    """``initial`` is the release of all brokers at first, and ``served`` what they serve;
    ``serve`` returns what brokers of another release do."""

    def __init__(
        self,
        cluster: Cluster,
        initial: Profile,
        served: Mapping[int, Versions],
        serve: Callable[[Profile], Mapping[int, Versions]],
    ) -> None:
        self._cluster = cluster
        self._initial = initial
        self._serve = serve
        # "" is the software of a broker that was never upgraded.
        self._profiles = {"": initial, initial.name: initial}
        self._served = {"": served, initial.name: served}

    def release(self, name: str) -> Software:
        """What a broker of a release runs. Raises UnknownNameError."""
        found = self._profiles.get(name)
        if found is None:
            found = with_fixes(profile(name), dict(self._initial.fixes))
            self._profiles[found.name] = found
            self._served[found.name] = self._serve(found)
        served, usual = self._served[found.name], self._served[""]
        return Software(
            found.name,
            found.software,
            found.reassignment,
            found.elections,
            keeps_znodes(found.reassignment),
            found.is_proposal,
            own_apis(
                {key: served.get(key) for key in INTER_BROKER if served.get(key) != usual.get(key)}
            ),
        )

    def profile_of(self, broker_id: int) -> Profile:
        """The release that a broker behaves as. A broker that still runs with ZooKeeper under KRaft
        controllers forwards requests to them, and has no features."""
        if len(self._profiles) == 2:  # no other release was named: each request comes here
            return self._initial
        own = self._profiles[self._cluster.controller.broker(broker_id).software]
        if own.forwarding or not self._cluster.upgrades.is_hybrid(broker_id):
            return own
        kraft = self._profiles[self._cluster.upgrades.current.name]
        return replace(
            own, mode=kraft.mode, reassignment=kraft.reassignment, elections=kraft.elections
        )

    def served_by(self, broker_id: int) -> Mapping[int, Versions]:
        """The versions that a broker serves."""
        broker = self._cluster.controller.broker(broker_id)
        return served_by(broker, self._served[broker.software])
