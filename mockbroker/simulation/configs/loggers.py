"""The loggers of brokers: resources of type BROKER_LOGGER (8, KIP-412).

Each broker keeps the levels of its own loggers, in memory and not in the log of the cluster, until
it stops. A level is that of the logger or, if it has none, of the nearest of its ancestors. A real
broker lists a logger for each of its classes, about a hundred; here there are those that
the configuration of its log names, and since 4.1 that of the class that serves the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.simulation.configs.changes import APPEND, DELETE, SET, SUBTRACT, ConfigOperation
from mockbroker.simulation.configs.effective import integer
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.state.actions import BrokerChanged, Change
from mockbroker.simulation.state.cluster_state import BROKER_LOGGER
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.results import (
    AlterConfigsResult,
    ConfigEntry,
    DescribeConfigsResult,
)

__all__ = ["BrokerLoggers"]

_SOURCE: Final = 6
"""DYNAMIC_BROKER_LOGGER_CONFIG."""
_ROOT: Final = "root"
_REFUSED: Final = {APPEND: "APPEND operation", SUBTRACT: "SUBTRACT operation"}
_LEVELS: Final = frozenset({"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"})

_CONFIGURED: Final = {
    _ROOT: "INFO",
    "kafka": "INFO",
    "kafka.authorizer.logger": "INFO",
    "kafka.controller": "TRACE",
    "kafka.log.LogCleaner": "INFO",
    "kafka.network.RequestChannel$": "WARN",
    "kafka.request.logger": "WARN",
    "org.apache.kafka": "INFO",
    "state.change.logger": "INFO",
}
_CONTROLLER: Final = "org.apache.kafka.server.logger.LoggingController"


class BrokerLoggers:
    """The loggers of all brokers of a cluster."""

    def __init__(self, controller: Controller, release: Release) -> None:
        self._release = release
        self._levels: dict[int, dict[str, str | None]] = {}
        controller.add_hooks((BrokerChanged,), after=self._broker_changed)

    def _broker_changed(self, _cause: str, change: Change) -> None:
        """A broker that starts again has the levels of its configuration."""
        assert isinstance(change, BrokerChanged)
        if not change.after.live:
            self._levels.pop(change.after.broker_id, None)

    @property
    def _names(self) -> tuple[str, ...]:
        listed = self._release.has(facts.LOGGING_CONTROLLER_LISTED)
        return (*_CONFIGURED, _CONTROLLER) if listed else (*_CONFIGURED,)

    def level(self, broker_id: int, logger: str) -> str:
        """Return the level that a logger follows."""
        levels = self._levels.get(broker_id, _CONFIGURED)
        name = logger
        while name:
            own = levels.get(name)
            if own is not None:
                return own
            name = name.rpartition(".")[0]
        return levels[_ROOT] or ""

    # ---- DescribeConfigs -----------------------------------------------------------------------

    def describe(
        self, name: str, loggers: Sequence[str] | None, receiver: int
    ) -> DescribeConfigsResult:
        """Describe the loggers of the broker ``receiver``; ``loggers`` None or empty: all."""
        text = ""
        if not name:
            text = "Broker id must not be empty"
        elif (broker_id := integer(name)) is None:
            text = f"Broker id must be an integer, but it is: {name}"
        elif broker_id != receiver:
            text = f"Unexpected broker id, expected {receiver} but received {name}"
        if text:
            return DescribeConfigsResult(BROKER_LOGGER, name, ErrorCode.INVALID_REQUEST, text)
        found = [each for each in self._names if not loggers or each in loggers]
        entries = tuple(
            ConfigEntry(
                name=each, value=self.level(receiver, each), read_only=False, source=_SOURCE,
                sensitive=False, config_type=0, documentation=None, synonyms=(),
            )
            for each in found
        )  # fmt: skip
        return DescribeConfigsResult(BROKER_LOGGER, name, configs=entries)

    # ---- IncrementalAlterConfigs ---------------------------------------------------------------

    def alter(
        self,
        name: str,
        operations: Sequence[ConfigOperation],
        receiver: int,
        *,
        validate_only: bool,
    ) -> AlterConfigsResult:
        """Change levels of the broker ``receiver``, all or none. An operation names a logger and a
        level."""
        try:
            self._check(name, operations, receiver)
        except Refusal as refusal:
            return AlterConfigsResult(BROKER_LOGGER, name, refusal.code, refusal.message)
        if not validate_only and operations:
            levels = self._levels.setdefault(receiver, {**_CONFIGURED})
            levels |= {logger: level if how == SET else None for logger, how, level in operations}
        return AlterConfigsResult(BROKER_LOGGER, name)

    def _check(self, name: str, operations: Sequence[ConfigOperation], receiver: int) -> None:
        release = self._release
        broker_id = integer(name)
        if broker_id is None:
            if name or release.has(facts.NODE_IDS_OF_LOGGERS):
                kind = "Node" if release.has(facts.NODE_IDS_OF_LOGGERS) else "Broker"
                raise _invalid(f"{kind} id must be an integer, but it is: {name}")
        elif broker_id != receiver:
            text = release.value_of(facts.OTHER_BROKERS_LOGGERS)
            raise _invalid(text.format(receiver=receiver, name=broker_id))
        for logger, how, level in operations:
            self._check_one(name, logger, how, "null" if level is None else level)

    def _check_one(self, name: str, logger: str, how: int, level: str) -> None:
        if how in _REFUSED:
            raise _invalid(f"{_REFUSED[how]} is not allowed for the BROKER_LOGGER resource")
        if how not in (SET, DELETE):
            if not self._release.value_of(facts.UNKNOWN_LOGGER_OPERATIONS_NAMED):
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
            raise _invalid(
                f"Unknown operation type {how} is not allowed for the BROKER_LOGGER resource"
            )
        if logger not in self._names:
            raise self._wrong(name, f"Logger {logger} does not exist!")
        if how == SET and level not in _LEVELS:
            levels = self._release.value_of(facts.LOG_LEVELS)
            raise self._wrong(
                name,
                f"Cannot set the log level of {logger} to {level} as it is not a supported log "
                f"level. Valid log levels are {levels}",
            )
        if how == DELETE and logger == _ROOT:
            raise _invalid("Removing the log level of the root logger is not allowed")

    def _wrong(self, name: str, problem: str) -> Refusal:
        code, text = self._release.value_of(facts.WRONG_LOGGER)
        return Refusal(code, text.format(name=name, problem=problem))


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, text)
