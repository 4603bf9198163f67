"""What AlterClientQuotas and DescribeClientQuotas refuse, as rows in the order in which Kafka
checks.

ZooKeeper mode has checks and texts of its own, the same in 2.8.2 and 3.9.2. In 2.6.3 and 2.7.2
addresses have no quotas.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping, Sequence, Set
from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.releases.rows import Refusable, Row, always, refuse, refuse_with_text

__all__ = [
    "CLIENT_ID",
    "COMPONENT_ROWS",
    "ENTITY_ROWS",
    "FILTER_ROWS",
    "IP",
    "READING_ROWS",
    "USER",
    "VALUE_ROWS",
    "Component",
    "ComponentRow",
    "EntityCheck",
    "FilterCheck",
    "ValueCheck",
]

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
_TYPES: Final = (USER, CLIENT_ID, IP)

EXACT: Final = 0
DEFAULT: Final = 1
SPECIFIED: Final = 2

_BAD_ZNODES: Final = ("", ".", "..")
"""Names that no znode can have."""

_ADDRESSES: Final = (2, 8)
"""The first release with quotas of addresses."""

_SIGNS: Final = (3, 5)
"""The first release with KRaft's checks of signs and sizes. By bytecode absent in 3.4.1 and present
in 3.5.0; 3.3.2 answers so."""

_LARGEST: Final = {"INT": float(2**31 - 1), "LONG": float(2**63 - 1)}
_ROUNDED_OFF: Final = 1e-6
_CLIENT_KEYS: Final = {
    "producer_byte_rate": "LONG",
    "consumer_byte_rate": "LONG",
    "request_percentage": "DOUBLE",
    "controller_mutation_rate": "DOUBLE",
}
_IP_KEYS: Final = {"connection_creation_rate": "INT"}


class EntityCheck(Refusable, msgspec.Struct):
    """An entity whose quotas a request alters: names by type, None for the default. ``repeated``: a
    quota of it, or the entity, is named twice. ``shown`` is Kafka's text of it."""

    names: Mapping[str, str | None]
    repeated: bool
    shown: str
    kraft: bool
    code: ErrorCode = ErrorCode.NONE
    text: str | None = None

    @property
    def wrong_type(self) -> str | None:
        """The first type that is unknown or has an empty name."""
        wrong = (type_ for type_, name in self.names.items() if type_ not in _TYPES or name == "")
        return next(wrong, None)

    @property
    def ip(self) -> str | None:
        return self.names.get(IP)


class ValueCheck(msgspec.Struct):
    """A quota that a request sets."""

    names: Mapping[str, str | None]
    key: str
    value: float
    kraft: bool
    code: ErrorCode = ErrorCode.NONE
    text: str | None = None

    @property
    def type(self) -> str | None:
        """The type of the quota, None if the entity has no such quota."""
        return (_IP_KEYS if IP in self.names else _CLIENT_KEYS).get(self.key)

    @property
    def article(self) -> str:
        return "an" if self.type == "INT" else "a"

    @property
    def is_whole(self) -> bool:
        """Whether the type allows fractions, or Java's cast to it rounds nothing off. Negative
        numbers are rounded up first. KRaft casts to LONG."""
        type_ = "LONG" if self.kraft and self.type == "INT" else self.type
        largest = _LARGEST.get(type_ or "")
        if largest is None:
            return True
        whole = math.trunc(max(-largest, min(self.value + _ROUNDED_OFF, largest)))
        return abs(whole - self.value) <= _ROUNDED_OFF


class Component(Refusable, msgspec.Struct):
    """A component of a filter. ``known`` are the types of the components before it."""

    type: str
    match_type: int
    match: str | None
    known: Set[str]
    kraft: bool
    code: ErrorCode = ErrorCode.NONE
    text: str | None = None

    @property
    def short_type(self) -> str:
        return self.type.removesuffix("-id")


class FilterCheck(Refusable, msgspec.Struct):
    """The names of all components of a filter by type; None for components that fit more than one
    name. ``strict``: an entity must have no other type."""

    names: Mapping[str, str | None]
    strict: bool
    kraft: bool
    code: ErrorCode = ErrorCode.NONE
    text: str | None = None

    @property
    def types(self) -> Set[str]:
        return self.names.keys()

    @property
    def reads_bad_znode(self) -> bool:
        """Whether Kafka reads one entity, whose name no znode can have."""
        types = {IP} if IP in self.types else {USER, CLIENT_ID}
        return (self.strict or self.types == types) and _has_bad_znode(self.names)


_Check: TypeAlias = EntityCheck | ValueCheck | Component | FilterCheck


def _has_bad_znode(names: Mapping[str, str | None]) -> bool:
    return any(name in _BAD_ZNODES for name in names.values())


def _unresolvable(check: EntityCheck) -> bool:
    if check.ip is None or check.ip == "localhost":
        return False
    try:
        ipaddress.ip_address(check.ip)
    except ValueError:
        return True
    return False


ENTITY_ROWS: Final[Sequence[Row[EntityCheck, EntityCheck]]] = (
    Row(
        "QUOTA-01",
        lambda check: check.repeated and check.kraft,
        (refuse_with_text("Ignoring duplicate entity {subject.shown}"),),
    ),
    Row(
        "QUOTA-02",
        lambda check: not check.names,
        (refuse_with_text("Invalid empty client quota entity"),),
    ),
    Row(
        "QUOTA-22",
        lambda check: IP in check.names,
        (refuse_with_text("Unhandled client quota entity type: ip"),),
        until=_ADDRESSES,
    ),
    Row(
        "QUOTA-03",
        lambda check: check.wrong_type is not None and check.wrong_type not in _TYPES,
        (refuse_with_text("Unhandled client quota entity type: {subject.wrong_type}"),),
    ),
    Row(
        "QUOTA-03",
        lambda check: check.wrong_type is not None,
        (refuse_with_text("Empty {subject.wrong_type} not supported"),),
    ),
    Row(
        "QUOTA-24",
        lambda check: IP in check.names and len(check.names) > 1 and not check.kraft,
        (
            refuse_with_text(
                "Invalid quota entity combination, IP entity should not be used with user/client "
                "ID entity."
            ),
        ),
    ),
    Row(
        "QUOTA-04",
        lambda check: IP in check.names and len(check.names) > 1,
        (refuse_with_text("Invalid empty client quota entity"),),
        until=(3, 0),
    ),
    Row(
        "QUOTA-04",
        lambda check: IP in check.names and len(check.names) > 1,
        (
            refuse_with_text(
                "Invalid quota entity combination, IP entity shouldnot be combined with User or "
                "ClientId"
            ),
        ),
    ),
    Row(
        "QUOTA-04",
        _unresolvable,
        (refuse_with_text("{subject.ip} is not a valid IP or resolvable host."),),
    ),
    Row(
        "QUOTA-24",
        lambda check: _has_bad_znode(check.names) and not check.kraft,
        (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),),
    ),
)

VALUE_ROWS: Final[Sequence[Row[ValueCheck, ValueCheck]]] = (
    Row(
        "QUOTA-05",
        lambda check: check.type is None,
        (refuse_with_text("Invalid configuration key {subject.key}"),),
    ),
    Row(
        "QUOTA-22",
        lambda check: not check.kraft and not check.is_whole,
        (refuse_with_text("Configuration {subject.key} must be a Long value"),),
        until=_ADDRESSES,
    ),
    Row(
        "QUOTA-24",
        lambda check: not check.kraft and not check.is_whole,
        (refuse_with_text("Configuration {subject.key} must be a {subject.type} value"),),
    ),
    Row("QUOTA-24", lambda check: not check.kraft, ()),
    Row(
        "REL-108",
        lambda check: check.type == "INT",
        (refuse_with_text("Unexpected config type INT should be Long or Double"),),
        until=(3, 0),
    ),
    Row(
        "QUOTA-23",
        lambda check: not check.is_whole,
        (refuse_with_text("Configuration {subject.key} must be a Long value"),),
        until=_SIGNS,
    ),
    Row("QUOTA-23", always, (), until=_SIGNS),
    Row(
        "QUOTA-06",
        lambda check: not math.isfinite(check.value),
        (refuse_with_text("Quota {subject.key} must be a finite number"),),
        since=(4, 4),
    ),
    Row(
        "QUOTA-06",
        lambda check: check.value <= 0,
        (refuse_with_text("Quota {subject.key} must be greater than 0"),),
    ),
    Row(
        "QUOTA-07",
        lambda check: check.value > _LARGEST.get(check.type or "", math.inf),
        (
            refuse_with_text(
                "Proposed value for {subject.key} is too large for {subject.article} "
                "{subject.type}."
            ),
        ),
    ),
    Row(
        "QUOTA-07",
        lambda check: check.type in _LARGEST and abs(math.fmod(check.value, 1)) > _ROUNDED_OFF,
        (refuse_with_text("{subject.key} cannot be a fractional value."),),
    ),
)

ComponentRow: TypeAlias = Row[Component, Component]

READING_ROWS: Final[Sequence[ComponentRow]] = (
    Row(
        "QUOTA-24",
        lambda part: part.match_type == EXACT and part.match is None and not part.kraft,
        (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),),
    ),
    Row(
        "QUOTA-24",
        lambda part: part.match_type not in (EXACT, DEFAULT, SPECIFIED) and not part.kraft,
        (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),),
    ),
)
"""What Kafka's class of the request refuses, in any component before the others are checked."""

COMPONENT_ROWS: Final[Sequence[ComponentRow]] = (
    Row(
        "QUOTA-22",
        lambda part: part.type == IP,
        (refuse_with_text("Custom entity type 'ip' not supported", ErrorCode.UNSUPPORTED_VERSION),),
        until=_ADDRESSES,
    ),
    Row(
        "QUOTA-24",
        lambda part: not part.type and not part.kraft,
        (refuse_with_text("Unexpected empty filter component entity type"),),
    ),
    Row(
        "QUOTA-24",
        lambda part: part.type in part.known and not part.kraft,
        (refuse_with_text("Duplicate {subject.short_type} filter component entity type"),),
    ),
    Row(
        "QUOTA-24",
        lambda part: part.type not in _TYPES and not part.kraft,
        (
            refuse_with_text(
                "Custom entity type '{subject.type}' not supported", ErrorCode.UNSUPPORTED_VERSION
            ),
        ),
    ),
    Row("QUOTA-24", lambda part: not part.kraft, ()),
    Row("QUOTA-08", lambda part: not part.type, (refuse_with_text("Invalid empty entity type."),)),
    Row(
        "QUOTA-08",
        lambda part: part.type in part.known,
        (
            refuse_with_text(
                "Entity type {subject.type} cannot appear more than once in the filter."
            ),
        ),
    ),
    Row(
        "QUOTA-08",
        lambda part: part.type not in _TYPES,
        (
            refuse_with_text(
                "Unsupported entity type {subject.type}", ErrorCode.UNSUPPORTED_VERSION
            ),
        ),
    ),
    Row(
        "QUOTA-09",
        lambda part: part.match_type == EXACT and part.match is None,
        (refuse_with_text("Request specified MATCH_TYPE_EXACT, but set match string to null."),),
    ),
    Row(
        "QUOTA-09",
        lambda part: part.match_type == DEFAULT and part.match is not None,
        (
            refuse_with_text(
                "Request specified MATCH_TYPE_DEFAULT, but also specified a match string."
            ),
        ),
    ),
    Row(
        "QUOTA-09",
        lambda part: part.match_type == SPECIFIED and part.match is not None,
        (
            refuse_with_text(
                "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string."
            ),
        ),
    ),
    Row(
        "QUOTA-09",
        lambda part: part.match_type not in (EXACT, DEFAULT, SPECIFIED),
        (refuse_with_text("Unknown match type {subject.match_type}"),),
    ),
)

FILTER_ROWS: Final[Sequence[Row[FilterCheck, FilterCheck]]] = (
    Row(
        "QUOTA-24",
        lambda check: IP in check.types and len(check.types) > 1 and not check.kraft,
        (
            refuse_with_text(
                "Invalid entity filter component combination, IP filter component should not be "
                "used with user or clientId filter component."
            ),
        ),
    ),
    Row(
        "QUOTA-10",
        lambda check: IP in check.types and len(check.types) > 1,
        (
            refuse_with_text(
                "Invalid entity filter component combination. IP filter component should not be "
                "used with user or clientId filter component."
            ),
        ),
    ),
    Row(
        "QUOTA-24",
        lambda check: check.reads_bad_znode and not check.kraft,
        (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),),
    ),
)
