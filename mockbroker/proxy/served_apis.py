"""API keys that a mock cluster answers in the upstream's place, so that a client with a new API can
be tried against a cluster that lacks it.

The mock cluster has the brokers and topics of the upstream's Metadata, and advertises the proxy's
listeners. It knows nothing of the upstream's records, groups and configs, and the upstream learns
nothing of its answers. Each client's connection has one of its own to the mock cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kproto.dialects import Dialect
from kproto.framing import SIZE_LENGTH
from kproto.schema.model import ZERO_UUID
from kproto.schema.versions import Versions
from mockbroker.apis import Session
from mockbroker.errors import ClusterError
from mockbroker.options.addresses import parse_endpoint
from mockbroker.profiles import profile as profile_of
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.serving.endpoints import show
from mockbroker.serving.served_versions import served_versions
from mockbroker.simulation.reassignment import keeps_znodes
from mockbroker.simulation.state.cluster_parts import Broker

__all__ = ["ServedApis"]

_log = logging.getLogger("mockbroker.proxy")

_OF_CONNECTIONS: Final = frozenset({17, 18, 36})
"""SaslHandshake, ApiVersions and SaslAuthenticate are about the connection to the upstream."""
_UNKNOWN_TOPIC: Final = 3

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ServedApis:
    """The keys that a mock cluster of the release ``profile`` answers. Raises ClusterError for a
    key that it does not serve."""

    def __init__(self, keys: Iterable[int], profile: str, codec: Dialect) -> None:
        self.profile = profile_of(profile)
        self.mock: MockCluster | None = None
        self._codec = codec
        self._lines: dict[int, Line] = {}
        self._learned: set[str] = set()
        """The upstream's topics. The mock cluster may have others, made by its own CreateTopics."""
        served = served_versions(self.profile, codec, implemented_only=True)
        self.versions: Mapping[int, Versions] = {
            key: served.get(key, Versions.NONE) for key in sorted(set(keys))
        }
        for key, versions in self.versions.items():
            if key in _OF_CONNECTIONS:
                raise ClusterError(f"API {key} is about the connection to the upstream")
            if not versions:
                raise ClusterError(f"the mock cluster of {profile} does not serve API {key}")

    # ---- life --------------------------------------------------------------------------------

    async def start(self, metadata: Any) -> None:
        """Start the mock cluster with the brokers and topics of a Metadata response, whose
        addresses are the proxy's."""
        brokers = sorted(metadata.brokers, key=lambda each: int(each.node_id))
        self.mock = mock = MockCluster(
            brokers=[Broker(each.node_id, rack=each.rack) for each in brokers],
            profile=self.profile,
            dialect=self._codec,
        )
        await mock.start()
        for each in brokers:
            mock.advertise(each.node_id, show(each.host, each.port))
        self.learn(metadata)

    async def stop(self) -> None:
        for connection_id in list(self._lines):
            self.closed(connection_id)
        mock, self.mock = self.mock, None
        if mock is not None:
            await mock.stop()

    def learn(self, metadata: Any) -> None:
        """Follow a Metadata response of the upstream: topics come and go, and in a cluster with
        ZooKeeper the controller moves."""
        mock = self.mock
        if mock is None:
            return
        for topic in metadata.topics:
            if topic.error_code == _UNKNOWN_TOPIC and topic.name in self._learned:
                self._learned.remove(topic.name)
                mock.cluster.topics.delete([(topic.name, ZERO_UUID)])
            elif not topic.error_code and topic.name and not topic.is_internal:
                self._add(mock, topic)
        to, moves = metadata.controller_id, keeps_znodes(self.profile.reassignment)
        if moves and to != mock.cluster.state.controller_id and to in mock.addresses:
            mock.failover(to)

    def _add(self, mock: MockCluster, topic: Any) -> None:
        if topic.name in mock.cluster.topics:
            return
        partitions = sorted(topic.partitions, key=lambda each: int(each.partition_index))
        assignment = [each.replica_nodes for each in partitions]
        try:
            topic_id = None if topic.topic_id == ZERO_UUID else topic.topic_id
            mock.cluster.topics.add((topic.name, assignment), topic_id)
            self._learned.add(topic.name)
        except ClusterError as error:
            _log.warning("the mock cluster does not get a topic of the upstream: %s", error)

    # ---- requests ----------------------------------------------------------------------------

    async def answer(
        self, session: Session, frame: bytes, *, expects_response: bool
    ) -> bytes | None:
        """Return the answer to a request; None if the mock cluster closes the connection instead.
        It is empty for a request without a response."""
        try:
            reader, writer = await self._line(session)
            writer.write(frame)
            if not expects_response:
                return b""
            size = await reader.readexactly(SIZE_LENGTH)
            return size + await reader.readexactly(int.from_bytes(size, "big"))
        except (OSError, asyncio.IncompleteReadError):
            self.closed(session.connection_id)
            return None

    async def _line(self, session: Session) -> Line:
        line = self._lines.get(session.connection_id)
        if line is None:
            mock = self.mock
            if mock is None:
                raise ConnectionError("the mock cluster has stopped")
            addresses = mock.addresses
            broker_id = session.broker_id if session.broker_id in addresses else min(addresses)
            host, port = parse_endpoint(addresses[broker_id])
            line = await asyncio.open_connection(host, port)
            self._lines[session.connection_id] = line
        return line

    def closed(self, connection_id: int) -> None:
        """A client's connection is closed, so its connection to the mock cluster is, too."""
        line = self._lines.pop(connection_id, None)
        if line is not None:
            with contextlib.suppress(RuntimeError):  # the event loop is closed already
                line[1].close()
