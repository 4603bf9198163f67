"""What a KRaft controller refuses before any handler is called."""

from __future__ import annotations

from typing import Final

from kproto.connection import RequestReceived
from kproto.error_codes import ErrorCode
from mockbroker.serving.exchange import Close, Exchange, Reply
from mockbroker.serving.refusals import error_reply
from mockbroker.simulation.cluster import Cluster

__all__ = ["ControllerStage"]

_BETWEEN_NODES: Final = frozenset({1, 7})
"""Fetch and ControlledShutdown: at a controller they are about the metadata log and the sessions of
brokers, which the mock does not have."""
_OF_ANY: Final = frozenset({17, 18, 29, 32, 36, 55, 60})
"""What controllers answer that are not active: SaslHandshake, ApiVersions, DescribeAcls,
DescribeConfigs, SaslAuthenticate, DescribeQuorum and DescribeCluster."""


class ControllerStage:
    """A stage of the listeners of controllers."""

    def __init__(self, cluster: Cluster) -> None:
        self._quorum = cluster.quorum

    def answer(self, exchange: Exchange) -> Reply | Close | None:
        if not isinstance(exchange.request, RequestReceived):
            return None
        if exchange.api_key in _BETWEEN_NODES:
            return error_reply(exchange, ErrorCode.UNSUPPORTED_VERSION, "unimplemented")
        if exchange.session.controller == self._quorum.leader_id or exchange.api_key in _OF_ANY:
            return None
        return error_reply(exchange, ErrorCode.NOT_CONTROLLER, "")
