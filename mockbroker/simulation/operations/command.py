"""What a command is, and what it acts on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from mockbroker.simulation.operations.arguments import Argument, BrokerChoice

if TYPE_CHECKING:
    from mockbroker.simulation.cluster import Cluster

__all__ = ["Command", "CommandCall", "CommandTarget"]


class CommandTarget(Protocol):
    """What commands act on: the simulated cluster, and what only a running one has.

    Commands on listeners and on software may return an awaitable that completes them.
    """

    @property
    def cluster(self) -> Cluster: ...
    def advance(self, milliseconds: int) -> object: ...
    def stop_broker(self, broker_id: int) -> object: ...
    def start_broker(self, broker_id: int) -> object: ...
    def fail_log_dir(self, broker_id: int, directory: str | None = None) -> object: ...
    def mend_log_dir(self, broker_id: int, directory: str | None = None) -> object: ...
    def close_listener(self, broker_id: int) -> object: ...
    def open_listener(self, broker_id: int) -> object: ...
    def set_level(self, broker_id: int, level: str) -> object: ...
    def advertise(self, broker_id: int, address: str) -> object: ...


class Command(msgspec.Struct, frozen=True):
    """``run`` is given the target and the arguments by name; it may return an awaitable.

    ``help`` is one sentence, ``details`` what ``mockbroker ctl COMMAND --help`` adds to it.
    """

    name: str
    help: str
    run: Callable[[CommandTarget, Mapping[str, Any]], object]
    arguments: tuple[Argument, ...] = ()
    details: str = ""

    @property
    def usage(self) -> str:
        """``join-isr TOPIC-PARTITION BROKER``"""
        words = (f"[{each.metavar}]" if each.optional else each.metavar for each in self.arguments)
        return " ".join([self.name, *words])


class CommandCall(msgspec.Struct, frozen=True):
    """A command with its arguments. ``str`` gives the text that ``parse_command`` reads."""

    command: Command
    values: Mapping[str, Any]

    def __str__(self) -> str:
        given = ((each, self.values[each.name]) for each in self.command.arguments)
        words = [
            each.type.to_text(value)
            for each, value in given
            if not (each.optional and value is None)
        ]
        return " ".join([self.command.name, *words])

    def run(self, target: CommandTarget) -> object:
        """Raises ClusterError if the cluster cannot carry it out."""
        return self.command.run(target, self.values)

    def with_broker(self, choose: Callable[[BrokerChoice], int]) -> CommandCall:
        """The same call with ``self`` and ``other`` replaced by broker ids."""
        if self.values.get("broker") is None:
            return self
        return CommandCall(self.command, {**self.values, "broker": choose(self.values["broker"])})
