"""The mock cluster of one play: set up as the case says, moved by its steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from kproto.schema.versions import Versions
from kspec.errors import KspecError
from kspec.model import Case, ClusterSpec
from kspec.reading import api_key
from mockbroker import MockCluster

__all__ = ["Stage", "cluster_of"]


def cluster_of(case: Case) -> MockCluster:
    """Not started. Raises KprotoError where the case asks for what cannot be."""
    spec = case.cluster
    return MockCluster(
        brokers=spec.brokers,
        topics=spec.topics,
        profile=case.profile,
        apis=_apis(spec),
        implemented_only=spec.implemented_only,
        auto_progress_ms=spec.auto_progress_ms,
        clock=spec.clock,
        auto_create_topics=spec.auto_create_topics,
        broker_configs=spec.broker_configs,
        reply35=spec.reply35,
        sasl=spec.sasl,
        propagation_ms=spec.propagation_ms,
    )


def _apis(spec: ClusterSpec) -> dict[int, Versions | None]:
    found: dict[int, Versions | None] = {}
    for name, versions in spec.apis.items():
        key = api_key(int(name) if name.isdigit() else name)
        if key is None:
            raise KspecError(f"cluster.apis: {name!r} is no api of Kafka's")
        found[key] = None if versions in (False, "off") else Versions.parse(str(versions))
    return found


class Stage:
    """A started cluster, and its steps in the words of ``mockbroker ctl``."""

    def __init__(self, mock: MockCluster, case: Case) -> None:
        self.mock = mock
        self._case = case

    async def start(self) -> None:
        await self.mock.start()
        controller = self._case.cluster.controller
        if controller is not None and controller != self.mock.cluster.controller_id:
            self.mock.failover(controller)

    async def stop(self) -> None:
        await self.mock.stop()

    @property
    def bootstrap(self) -> str:
        """What the client is told: every broker, or those the case names."""
        named = self._case.client.bootstrap
        addresses = self.mock.addresses
        return ",".join(addresses[each] for each in named or addresses)

    def state(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.mock.cluster.state()
        return found

    async def step(self, text: str) -> None:
        """Raises KspecError for what is no step, ClusterError for what cannot be done."""
        verb, *words = text.split()
        count, perform = _STEPS.get(verb, (0, None))
        if perform is None or len(words) != count:
            known = ", ".join(f"{name} ({n} words)" for name, (n, _) in _STEPS.items())
            raise KspecError(f"no such step: {text!r}; there are {known}")
        done = perform(self.mock, words)
        if isinstance(done, Awaitable):
            await done


def _milliseconds(text: str) -> int:
    if text.endswith("ms"):
        return int(text[:-2])
    return int(text[:-1]) * 1000 if text.endswith("s") else int(text)


_Step = Callable[[MockCluster, Sequence[str]], Any]

_STEPS: Final[Mapping[str, tuple[int, _Step]]] = {
    "failover": (1, lambda mock, words: mock.failover(int(words[0]))),
    "stop-broker": (1, lambda mock, words: mock.stop_broker(int(words[0]))),
    "start-broker": (1, lambda mock, words: mock.start_broker(int(words[0]))),
    "join-isr": (2, lambda mock, words: mock.join_isr(words[0], int(words[1]))),
    "leave-isr": (2, lambda mock, words: mock.leave_isr(words[0], int(words[1]))),
    "hold-metadata": (1, lambda mock, words: mock.hold_metadata(int(words[0]))),
    "release-metadata": (1, lambda mock, words: mock.release_metadata(int(words[0]))),
    "hold-elections": (0, lambda mock, words: mock.hold_elections()),
    "release-elections": (0, lambda mock, words: mock.release_elections()),
    "advance": (1, lambda mock, words: mock.advance(_milliseconds(words[0]))),
}
