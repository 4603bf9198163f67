"""The options of ``mockbroker serve`` about brokers that are not like the others: older software,
another process; and whether the controller talks to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from mockbroker.errors import ClusterError
from mockbroker.serving.endpoints import parse_endpoint

__all__ = ["inter_broker_of", "inter_broker_options"]

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--inter-broker",
        type=click.Choice(["on", "off"]),
        help="With a profile of the ZooKeeper era: let the controller send LeaderAndIsr, "
        "StopReplica and UpdateMetadata to its brokers, on sockets apart from clients' and into "
        "the same journal. off: it only logs them. Unless given, on with the profiles of proposals "
        "(kip-...) and with external brokers.",
    ),
    click.option(
        "--broker-api",
        "broker_apis",
        multiple=True,
        metavar="BROKER:KEY=VERSIONS",
        help="Have one broker run other software: it serves an api key at these versions, as in "
        "3:4=0-2, or not at all, 3:45=off, or all keys as a release does, 3:kafka-2.3. "
        "Repeatable.",
    ),
    click.option(
        "--external-broker",
        "external_brokers",
        multiple=True,
        metavar="ID=HOST:PORT",
        help="Let this broker, one of the cluster's or one more, be another process: the "
        "controller's requests go there, and Metadata says it is there. Repeatable.",
    ),
)


def inter_broker_options(command: CommandT) -> CommandT:
    """Give a command these options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def inter_broker_of(options: dict[str, Any]) -> dict[str, Any]:
    """What they say, as arguments of ``MockCluster``. Raises ClusterError."""
    # Codecs are slow to import for a command line that may only want --help.
    from mockbroker.serving.served_versions import parse_broker_apis

    levels: dict[int, str] = {}
    for text in options["broker_apis"]:
        broker_id, level = parse_broker_apis(text)
        if broker_id in levels and ("=" not in level or "=" not in levels[broker_id]):
            raise ClusterError(f"{text!r}: broker {broker_id} has a release; give versions or that")
        levels[broker_id] = f"{levels[broker_id]},{level}" if broker_id in levels else level
    external = dict(_external(text) for text in options["external_brokers"])
    if len(external) < len(options["external_brokers"]):
        raise ClusterError("--external-broker: one place for each broker id")
    return {
        "inter_broker": {"on": True, "off": False}.get(options["inter_broker"]),
        "broker_levels": levels,
        "external_brokers": external,
    }


def _external(text: str) -> tuple[int, tuple[str, int]]:
    broker, equals, where = text.partition("=")
    if not (equals and broker.isascii() and broker.isdigit()):
        raise ClusterError(f"{text!r}: use ID=HOST:PORT, as in 3=127.0.0.1:9092")
    host, port = parse_endpoint(where)
    if not port:
        raise ClusterError(f"{text!r} has no port; use ID=HOST:PORT")
    return int(broker), (host, port)
