"""The commands on a proxy: its connections to the upstream, and their speed.

The target is ``mockbroker.proxy.kafka_proxy.KafkaProxy``, or what a fault rule may do to it.
"""

from __future__ import annotations

from typing import Any, Final

from mockbroker.simulation.operations.arguments import BROKER, COUNT, DURATION, Argument
from mockbroker.simulation.operations.command import Command

__all__ = ["PROXY_ROWS"]


def _drop_upstream(on: Any, given: Any) -> object:
    return on.drop_upstream(given["broker"])


def _refuse_upstream(on: Any, given: Any) -> object:
    return on.refuse_upstream(given["broker"])


def _allow_upstream(on: Any, given: Any) -> object:
    return on.allow_upstream(given["broker"])


def _set_latency(on: Any, given: Any) -> object:
    return on.set_latency(given["duration"])


def _set_bandwidth(on: Any, given: Any) -> object:
    return on.set_bandwidth(given["bytes"])


PROXY_ROWS: Final = (
    Command(
        "drop-upstream",
        "Close the connections to an upstream broker, and those of their clients.",
        _drop_upstream,
        (BROKER,),
    ),
    Command(
        "refuse-upstream",
        "Close new connections for an upstream broker at once, as if it did not listen.",
        _refuse_upstream,
        (BROKER,),
        details="Open connections stay; `drop-upstream` closes them. `allow-upstream` ends it.",
    ),
    Command(
        "allow-upstream",
        "Accept connections for an upstream broker again.",
        _allow_upstream,
        (BROKER,),
    ),
    Command(
        "set-latency",
        "Delay everything that passes, in each direction; 0 ends it.",
        _set_latency,
        (DURATION,),
    ),
    Command(
        "set-bandwidth",
        "Limit the bytes a second of each connection, in each direction; 0 ends it.",
        _set_bandwidth,
        (Argument("bytes", COUNT),),
    ),
)
