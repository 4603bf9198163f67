"""Configs of the resource type CLIENT_METRICS (16, KIP-714): subscriptions to clients' metrics.

A subscription lists prefixes of metrics, the interval at which clients push them, and patterns that
say which clients it is for. ``CONFIG_ROWS`` are what IncrementalAlterConfigs refuses, as rows in
the order in which Kafka checks. Patterns are Java's; those that Python's ``re`` reads otherwise are
not recognised.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.simulation.configs.definitions import ConfigDefinition
from mockbroker.simulation.configs.values import check_value, items_of
from mockbroker.simulation.releases.rows import Row, refuse_with_text

__all__ = [
    "ALL_METRICS",
    "CONFIG_ROWS",
    "DEFAULT_INTERVAL_MS",
    "INTERVAL",
    "MATCH",
    "METRICS",
    "MatchPattern",
    "SubscriptionCheck",
    "match_patterns",
]

METRICS: Final = "metrics"
INTERVAL: Final = "interval.ms"
MATCH: Final = "match"
_NAMES: Final = (METRICS, INTERVAL, MATCH)
_LISTS: Final = (METRICS, MATCH)

ALL_METRICS: Final = "*"
"""As a prefix in ``metrics``: every metric."""
DEFAULT_INTERVAL_MS: Final = 300_000
_SHORTEST_MS: Final = 100
_LONGEST_MS: Final = 3_600_000

_CLIENT_FACTS: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""What a pattern can be about."""

MatchPattern = tuple[str, re.Pattern[str]]
"""What of a client has to match, and the pattern that all of it has to match."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")


def match_patterns(value: str) -> list[MatchPattern]:
    """The patterns of ``match``. Raises ValueError with the first item that is not a pattern."""
    found: dict[str, re.Pattern[str]] = {}
    for item in items_of(value):
        parts = item.split("=")
        while parts and not parts[-1]:  # as Java's ``split``
            parts.pop()
        if len(parts) != 2 or parts[0].strip() not in _CLIENT_FACTS:
            raise ValueError(item)
        try:
            found[parts[0].strip()] = re.compile(parts[1].strip())
        except (re.error, RecursionError, OverflowError):
            raise ValueError(item) from None
    return list(found.items())


class SubscriptionCheck(msgspec.Struct):
    """A subscription as it would be after a change. ``definitions`` are the release's configs."""

    name: str
    values: Mapping[str, str]
    definitions: Mapping[str, ConfigDefinition]
    code: ErrorCode = ErrorCode.NONE
    text: str | None = None

    @property
    def unknown(self) -> str | None:
        """The first config that a subscription does not have."""
        return next((each for each in self.values if each not in _NAMES), None)

    @property
    def interval(self) -> str:
        return self.values.get(INTERVAL, self.definitions[INTERVAL].default or "")

    @property
    def interval_problem(self) -> str | None:
        """Why ``interval.ms`` is not a number, in the words of ``ConfigDef``."""
        try:
            check_value(self.definitions[INTERVAL], self.interval)
        except Refusal as refusal:
            return refusal.message
        return None

    @property
    def interval_ms(self) -> int:
        return int(self.interval)

    @property
    def repeating(self) -> str | None:
        """The first list with an item that it has twice."""
        return next((name for name, items in self._lists() if max(items.values()) > 1), None)

    @property
    def gappy(self) -> str | None:
        """The first list with an empty item."""
        return next((name for name, items in self._lists() if "" in items), None)

    @property
    def bad_pattern(self) -> str | None:
        try:
            match_patterns(self.values.get(MATCH, ""))
        except ValueError as error:
            return str(error)
        return None

    @property
    def bad_raw_pattern(self) -> str | None:
        """As ``bad_pattern``, with the spaces around it."""
        for each in self.values.get(MATCH, "").split(","):
            try:
                match_patterns(each)
            except ValueError:
                return each
        return None

    @property
    def is_empty_match(self) -> bool:
        return self.values.get(MATCH, " ") == ""

    def _lists(self) -> Iterator[tuple[str, Counter[str]]]:
        for name in _LISTS:
            items = Counter(items_of(self.values.get(name, "")))
            if items:
                yield name, items


def _refuse_unexpectedly(check: SubscriptionCheck) -> None:
    """The controller fails, and says nothing."""
    check.code = ErrorCode.UNKNOWN_SERVER_ERROR


_LISTS_CHECKED_SINCE: Final = (4, 2)


def _list_rows(name: str) -> tuple[Row[SubscriptionCheck, SubscriptionCheck], ...]:
    """The items of the list ``name`` are neither repeated nor empty."""
    text = f"Configuration '{name}' values must not be "
    return (
        Row(
            "TELEM-03",
            lambda check: check.repeating == name,
            (refuse_with_text(text + "duplicated.", ErrorCode.INVALID_CONFIG),),
            since=_LISTS_CHECKED_SINCE,
        ),
        Row(
            "TELEM-03",
            lambda check: check.gappy == name,
            (refuse_with_text(text + "empty.", ErrorCode.INVALID_CONFIG),),
            since=_LISTS_CHECKED_SINCE,
        ),
    )


CONFIG_ROWS: Final[Sequence[Row[SubscriptionCheck, SubscriptionCheck]]] = (
    Row(
        "TELEM-01",
        lambda check: not check.name,
        (refuse_with_text("Subscription name can't be empty", ErrorCode.INVALID_REQUEST),),
    ),
    Row(
        "TELEM-02",
        lambda check: check.unknown is not None,
        (
            refuse_with_text(
                "Unknown client metrics configuration: {subject.unknown}", ErrorCode.INVALID_REQUEST
            ),
        ),
    ),
    *_list_rows(METRICS),
    Row(
        "TELEM-04",
        lambda check: check.interval_problem is not None or not _INTEGER.fullmatch(check.interval),
        (_refuse_unexpectedly,),
        until=(4, 0),
    ),
    Row(
        "TELEM-04",
        lambda check: check.interval_problem is not None,
        (refuse_with_text("{subject.interval_problem}", ErrorCode.INVALID_CONFIG),),
        since=(4, 0),
    ),
    *_list_rows(MATCH),
    Row(
        "TELEM-05",
        lambda check: not _SHORTEST_MS <= check.interval_ms <= _LONGEST_MS,
        (
            refuse_with_text(
                "Invalid value {subject.interval_ms} for interval.ms, interval must be between 100 "
                "and 3600000 (1 hour)",
                ErrorCode.INVALID_REQUEST,
            ),
        ),
    ),
    Row(
        "TELEM-06",
        lambda check: check.is_empty_match,
        (refuse_with_text("Illegal client matching pattern: ", ErrorCode.INVALID_CONFIG),),
        until=(4, 0),
    ),
    Row(
        "TELEM-06",
        lambda check: check.bad_raw_pattern is not None,
        (
            refuse_with_text(
                "Illegal client matching pattern: {subject.bad_raw_pattern}",
                ErrorCode.INVALID_CONFIG,
            ),
        ),
        until=(4, 0),
    ),
    Row(
        "TELEM-06",
        lambda check: check.bad_pattern is not None,
        (
            refuse_with_text(
                "Illegal client matching pattern: {subject.bad_pattern}", ErrorCode.INVALID_CONFIG
            ),
        ),
    ),
)
