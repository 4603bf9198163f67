"""The options of ``mockbroker serve`` for inter-broker requests, and for brokers that run other
software or in another process.
"""

from __future__ import annotations

from typing import Any

import click
from cloup import option_group

from mockbroker.errors import ClusterError
from mockbroker.serving.endpoints import parse_endpoint

__all__ = ["inter_broker_of", "inter_broker_options"]

inter_broker_options = option_group(
    "Inter-broker requests",
    click.option(
        "--inter-broker",
        type=click.Choice(["on", "off"]),
        help="Whether a ZooKeeper-mode controller sends LeaderAndIsr, StopReplica and "
        "UpdateMetadata to its brokers, on sockets apart from the clients' and into the same "
        "journal. off: it only logs them. Default: on with the profiles of proposals (kip-...) "
        "and with external brokers.",
    ),
    click.option(
        "--broker-api",
        "broker_apis",
        multiple=True,
        metavar="BROKER:KEY=VERSIONS",
        help="Give a broker other software: versions of an API key (3:4=0-2), no support for it "
        "(3:45=off), or the versions of a release (3:kafka-2.3). Repeatable.",
    ),
    click.option(
        "--external-broker",
        "external_brokers",
        multiple=True,
        metavar="ID=HOST:PORT",
        help="Declare that a broker runs in another process: Metadata lists this address, and the "
        "controller sends its requests there. Repeatable.",
    ),
)


def inter_broker_of(options: dict[str, Any]) -> dict[str, Any]:
    """The options as fields of ``ClusterOptions``. Raises ClusterError."""
    # Importing codecs would slow down --help.
    from mockbroker.serving.served_versions import parse_broker_apis

    levels: dict[int, str] = {}
    for text in options["broker_apis"]:
        broker_id, level = parse_broker_apis(text)
        if broker_id in levels and ("=" not in level or "=" not in levels[broker_id]):
            raise ClusterError(f"{text!r}: give broker {broker_id} either a release or versions")
        levels[broker_id] = f"{levels[broker_id]},{level}" if broker_id in levels else level
    external = dict(_external(text) for text in options["external_brokers"])
    if len(external) < len(options["external_brokers"]):
        raise ClusterError("--external-broker: a broker id is given twice")
    return {
        "inter_broker": {"on": True, "off": False}.get(options["inter_broker"]),
        "broker_levels": levels,
        "external_brokers": external,
    }


def _external(text: str) -> tuple[int, tuple[str, int]]:
    broker, equals, where = text.partition("=")
    if not (equals and broker.isascii() and broker.isdigit()):
        raise ClusterError(f"{text!r}: use ID=HOST:PORT, such as 3=127.0.0.1:9092")
    host, port = parse_endpoint(where)
    if not port:
        raise ClusterError(f"{text!r} has no port; use ID=HOST:PORT")
    return int(broker), (host, port)
