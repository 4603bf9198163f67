"""What a rule does to the cluster when it is hit: the texts that ``mockbroker ctl`` takes. Text to
plain values; who carries them out is given to ``matching``'s rule book.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from mockbroker.errors import ClusterError, FaultError
from mockbroker.state.model import TopicPartition
from mockbroker.topics.spec import parse_milliseconds, parse_topic_partition

__all__ = ["BrokerChoice", "ClusterStep", "parse_step"]

BrokerChoice: TypeAlias = int | Literal["self", "other"]
"""An id, or the broker that was asked, or the lowest live one that was not."""

_OF_A_BROKER: Final = (
    "failover", "stop-broker", "start-broker", "hold-metadata", "release-metadata",
    "close-listener", "open-listener", "expire-session",
)  # fmt: skip
_OF_A_REPLICA: Final = ("join-isr", "leave-isr")
_COMMANDS: Final = (*_OF_A_BROKER, *_OF_A_REPLICA, "resign-controller", "advance")


@dataclass(frozen=True, slots=True)
class ClusterStep:
    """``str`` gives the text that makes it again."""

    command: str
    broker: BrokerChoice = 0
    partition: TopicPartition | None = None
    milliseconds: int = 0

    def __str__(self) -> str:
        if self.command == "advance":
            return f"advance {self.milliseconds}ms"
        if self.command == "resign-controller":
            return self.command
        if self.partition is not None:
            topic, index = self.partition
            return f"{self.command} {topic}-{index} {self.broker}"
        return f"{self.command} {self.broker}"


def parse_step(text: str) -> ClusterStep:
    """``failover 2``, ``join-isr foo-0 4``, ``advance 500ms``. Raises FaultError."""
    try:
        match str(text).split():
            case ["advance", duration]:
                return ClusterStep("advance", milliseconds=parse_milliseconds(duration))
            case ["resign-controller"]:
                return ClusterStep("resign-controller")
            case [command, broker] if command in _OF_A_BROKER:
                return ClusterStep(command, _broker(broker))
            case [command, partition, broker] if command in _OF_A_REPLICA:
                return ClusterStep(command, _broker(broker), parse_topic_partition(partition))
    except ClusterError as error:
        raise FaultError(f"step {text!r}: {error}") from None
    raise FaultError(
        f"step {text!r} is none; there are {', '.join(_COMMANDS)}, as in `failover 2`, "
        "`join-isr foo-0 4`, `advance 500ms`"
    )


def _broker(text: str) -> BrokerChoice:
    if text == "self":
        return "self"
    if text == "other":
        return "other"
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ClusterError(f"{text!r} is no broker: use an id, self or other")
    return int(text)
