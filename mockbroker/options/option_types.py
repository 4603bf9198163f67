"""The types of options that are not simulated: addresses, versions of APIs, brokers, access rules.
The functions raise ClusterError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kproto.schema.versions import Versions
from mockbroker.errors import ClusterError
from mockbroker.options.addresses import parse_endpoint
from mockbroker.simulation.state.option_declarations import OptionType
from mockbroker.simulation.state.option_types import (
    by_broker,
    flag_of,
    integer_of,
    object_of,
    text_of,
    texts_of,
)
from mockbroker.simulation.topics.spec import parse_brokers

if TYPE_CHECKING:
    from mockbroker.simulation.security.authorizer import Authorizer
    from mockbroker.simulation.state.cluster_parts import Broker

__all__ = [
    "ADDRESS",
    "ADDRESS_BY_BROKER",
    "AUTHORIZER",
    "BROKERS",
    "LEVEL_BY_BROKER",
    "RACK_BY_BROKER",
    "VERSIONS_BY_API",
    "api_overrides",
    "parse_api_override",
]

# ---- brokers -------------------------------------------------------------------------------------


def _brokers(name: str, value: Any) -> list[Broker]:
    text = value if isinstance(value, str) else str(integer_of(name, value))
    try:
        return parse_brokers(text)
    except ClusterError as error:
        raise ClusterError(f'"{name}": {error}') from None


def _of_broker(text: str, separator: str, usage: str) -> tuple[int, str]:
    """Split a text that begins with a broker id."""
    broker, found, rest = text.partition(separator)
    if not (found and rest and broker.isascii() and broker.isdigit()):
        raise ClusterError(f"{text!r}: use {usage}")
    return int(broker), rest


def _rack(text: str) -> tuple[int, str]:
    return _of_broker(text, "=", "ID=RACK, such as 1=rack-a")


def _texts_by_broker(name: str, value: Any) -> dict[int, str]:
    return by_broker(name, value, text_of)


# ---- addresses -----------------------------------------------------------------------------------


def _with_port(text: str) -> tuple[str, int]:
    host, port = parse_endpoint(text)
    if not port:
        raise ClusterError(f"{text!r} has no port; use HOST:PORT")
    return host, port


def _external(text: str) -> tuple[int, tuple[str, int]]:
    broker_id, where = _of_broker(text, "=", "ID=HOST:PORT, such as 3=127.0.0.1:9092")
    return broker_id, _with_port(where)


def _addresses_by_broker(name: str, value: Any) -> dict[int, tuple[str, int]]:
    return {key: _with_port(text) for key, text in _texts_by_broker(name, value).items()}


def _once_each(given: Iterable[tuple[int, tuple[str, int]]]) -> dict[int, tuple[str, int]]:
    pairs = list(given)
    if len(dict(pairs)) < len(pairs):
        raise ClusterError("a broker id is given twice")
    return dict(pairs)


# ---- versions of APIs ----------------------------------------------------------------------------


def parse_api_override(text: str) -> tuple[int, Versions | None]:
    """Parse ``45=0-1``, ``45=0``, ``45=off`` or, by name, ``ALTER_PARTITION_REASSIGNMENTS=0-1``."""
    key, equals, value = text.partition("=")
    if not (equals and value.strip()):
        raise ClusterError(f"{text!r}: use KEY=LOWEST-HIGHEST or KEY=off, as in 45=0-1")
    api_key = _api_key(key.strip())
    if value.strip().lower() == "off":
        return api_key, None
    try:
        versions = Versions.parse(value)
    except ValueError as error:
        raise ClusterError(f"{text!r}: {error}") from None
    return api_key, versions or None


def _api_key(text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    from kproto.dialects import dialect  # here: codecs would slow down --help

    requested = text.upper().replace("-", "_")
    for key, api in dialect("kafka").apis.items():
        if api.name == requested:
            return key
    raise ClusterError(f"unknown API {text!r}; use its key, as in 45=0-1")


def _versions_by_api(name: str, value: Any) -> dict[int, Versions | None]:
    return api_overrides(object_of(name, value, text_of))


def api_overrides(given: Mapping[Any, Versions | str | None]) -> dict[int, Versions | None]:
    """Versions by API key, of which some are written as for ``parse_api_override``."""
    return dict(
        parse_api_override(f"{key}={each}") if isinstance(each, str) else (key, each)
        for key, each in given.items()
    )


def _broker_level(text: str) -> tuple[int, str]:
    return _of_broker(text, ":", "BROKER:KEY=LOWEST-HIGHEST, as in 3:4=0-2")


def _joined_levels(given: Iterable[tuple[int, str]]) -> dict[int, str]:
    levels: dict[int, str] = {}
    for broker_id, level in given:
        if broker_id in levels and ("=" not in level or "=" not in levels[broker_id]):
            raise ClusterError(
                f"'{broker_id}:{level}': give broker {broker_id} either a release or versions"
            )
        levels[broker_id] = f"{levels[broker_id]},{level}" if broker_id in levels else level
    return levels


# ---- access rules --------------------------------------------------------------------------------

_AUTHORIZER_MEMBERS: Final = {
    "super_users": {"type": "array", "items": {"type": "string"}},
    "allow_everyone_if_no_acl_found": {"type": "boolean"},
}


def _authorizer(name: str, value: Any) -> Authorizer:
    from mockbroker.simulation.security.authorizer import Authorizer

    if not isinstance(value, dict) or not value.keys() <= _AUTHORIZER_MEMBERS.keys():
        members = ", ".join(sorted(_AUTHORIZER_MEMBERS))
        raise ClusterError(f'"{name}" must be an object with {members}')
    users = texts_of(f"{name}.super_users", value.get("super_users", []))
    open_otherwise = value.get("allow_everyone_if_no_acl_found", False)
    return Authorizer(frozenset(users), flag_of(name, open_otherwise))


# ---- types ---------------------------------------------------------------------------------------


def _text_map(example: dict[str, str]) -> dict[str, Any]:
    return {
        "type": "object", "additionalProperties": {"type": "string"}, "examples": [example],
    }  # fmt: skip


BROKERS: Final = OptionType(
    {"type": "integer", "minimum": 1, "examples": [3]}, _brokers, "N|FIRST-LAST", parse_brokers
)
ADDRESS: Final = OptionType(
    {"type": "string", "examples": ["broker.test:9092"]},
    lambda name, value: parse_endpoint(text_of(name, value)),
)
RACK_BY_BROKER: Final = OptionType(
    _text_map({"1": "a", "2": "b"}), _texts_by_broker, "ID=RACK", _rack, collect=dict
)
LEVEL_BY_BROKER: Final = OptionType(
    _text_map({"3": "4=0-2,45=off"}),
    _texts_by_broker,
    "BROKER:KEY=VERSIONS",
    _broker_level,
    collect=_joined_levels,
)
ADDRESS_BY_BROKER: Final = OptionType(
    _text_map({"3": "127.0.0.1:9092"}),
    _addresses_by_broker,
    "ID=HOST:PORT",
    _external,
    collect=_once_each,
)
VERSIONS_BY_API: Final = OptionType(
    _text_map({"45": "0-0", "46": "off"}),
    _versions_by_api,
    "KEY=VERSIONS",
    parse_api_override,
    collect=dict,
)
AUTHORIZER: Final = OptionType(
    {"type": "object", "properties": _AUTHORIZER_MEMBERS, "additionalProperties": False},
    _authorizer,
)
