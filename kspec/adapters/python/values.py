"""Values of the adapter protocol and their equivalents in clients: names of partitions, options,
records, access rules, and what a client returned."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from kspec.adapters.python.lines import Raised, Returned, Unsupported

__all__ = [
    "LIBRDKAFKA_NAMES",
    "PENDING",
    "GivenTokens",
    "ascending",
    "by_topic",
    "bytes_of",
    "chosen",
    "classic_only",
    "client_options",
    "elements",
    "get",
    "given_headers",
    "given_tokens",
    "header_texts",
    "key_of",
    "keys_of",
    "librdkafka_time_outs",
    "outcome_seconds",
    "partition_of",
    "place_of",
    "polled",
    "record_of",
    "record_outcome",
    "rule_parts",
    "rule_text",
    "security_protocol",
    "text_of",
]


def by_topic(keys: Any) -> dict[str, list[int]]:
    """Group ``["foo-0", "foo-1"]`` as ``{"foo": [0, 1]}``."""
    found: dict[str, list[int]] = {}
    for key in keys:
        topic, partition = partition_of(key)
        found.setdefault(topic, []).append(partition)
    return found


def client_options(call: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the options about security that ``connect`` asks for, by the client's names for
    them: ``protocol``, the members of ``tls`` and those of ``sasl``."""
    given = {"protocol": security_protocol(call), **call.get("tls", {}), **call.get("sasl", {})}
    return {names[name]: value for name, value in given.items() if name in names}


class GivenTokens:
    """The tokens of a ``connect`` with OAUTHBEARER."""

    def __init__(self, call: Mapping[str, Any]) -> None:
        self._tokens = list(call["sasl"]["tokens"])

    def next(self) -> dict[str, Any]:
        """Return the next one, or the last one again. Raises RuntimeError if there is none."""
        found: dict[str, Any] | None = (
            self._tokens.pop(0) if len(self._tokens) > 1 else self._tokens[0]
        )
        if found is None:
            raise RuntimeError("there is no token")
        return found


def given_tokens(call: Mapping[str, Any]) -> GivenTokens | None:
    """Return the tokens of a ``connect``, or None if it has none."""
    return GivenTokens(call) if "tokens" in call.get("sasl", {}) else None


LIBRDKAFKA_NAMES: Final = {
    "protocol": "security.protocol",
    "ca": "ssl.ca.location",
    "certificate": "ssl.certificate.location",
    "key": "ssl.key.location",
    "mechanism": "sasl.mechanism",
    "username": "sasl.username",
    "password": "sasl.password",
}
"""librdkafka's names of the options about security."""


def librdkafka_time_outs(timeout_ms: Any) -> dict[str, Any]:
    """Return librdkafka's time-outs. The second one cannot be less than a second."""
    setup = max(timeout_ms, 1000) if isinstance(timeout_ms, int) else timeout_ms
    return {"socket.timeout.ms": timeout_ms, "socket.connection.setup.timeout.ms": setup}


def security_protocol(call: Mapping[str, Any]) -> str:
    """Return Kafka's name of the security protocol that ``connect`` asks for."""
    over = "SSL" if "tls" in call else "PLAINTEXT"
    return f"SASL_{over}" if "sasl" in call else over


def chosen(
    given: Mapping[str, Any],
    names: Mapping[str, str],
    ignored: Collection[str] = (),
    values: Mapping[str, Mapping[Any, Any]] | None = None,
) -> dict[str, Any]:
    """Return the options of a producer or a consumer by the client's names for them.

    ``values`` has the client's values of those options that have other values here, also for the
    items of a list. Raises Unsupported for an option or a value that the client lacks, unless the
    option is among ``ignored``.
    """
    missing = sorted(set(given) - set(names) - set(ignored))
    if missing:
        raise Unsupported(f"the client has no option for {', '.join(missing)}")
    found = {}
    for name, value in given.items():
        if name in names:
            table = (values or {}).get(name)
            found[names[name]] = value if table is None else _value(name, value, table)
    return found


def _value(name: str, value: Any, table: Mapping[Any, Any]) -> Any:
    if isinstance(value, list):
        return [_value(name, each, table) for each in value]
    if value not in table:
        raise Unsupported(f"the client has no {value!r} for {name}")
    return table[value]


def classic_only(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a consumer without ``protocol``, for a client that only has the classic
    one. Raises Unsupported for another protocol."""
    if given.get("protocol", "classic") != "classic":
        raise Unsupported("the client has no consumer groups of KIP-848")
    return {name: value for name, value in given.items() if name != "protocol"}


PENDING = {"pending": True}
"""The outcome of a record that the client gave none."""
_LONGEST_OUTCOME_SECONDS = 13.0


def outcome_seconds(connect: Mapping[str, Any]) -> float:
    """How long ``produce`` waits for its records' outcomes, by the members of ``connect``: less
    than the 15 seconds after which the suite ends an adapter."""
    delivery: float = connect.get("producer", {}).get("delivery_timeout_ms", 0)
    timeout: float = connect["timeout_ms"]
    return min((delivery + timeout) / 1000 + 4, _LONGEST_OUTCOME_SECONDS)


def polled(count: int, milliseconds: float, poll: Callable[[float], Any]) -> Returned:
    """Call ``poll`` with the seconds left until it has returned ``count`` records, or time is up.

    ``poll`` returns a list of records. If it raises Raised, that ends the call, and the records
    before it are in the answer.
    """
    ends = time.monotonic() + milliseconds / 1000
    found: list[dict[str, Any]] = []
    while len(found) < count and (left := ends - time.monotonic()) > 0:
        try:
            found += poll(left)
        except Raised as raised:
            raise Raised(raised.error, found) from raised.error
    return Returned(found, found)


def text_of(data: Any) -> Any:
    """Return a key or a value as text, or as ``{"hex": ...}`` if it is not UTF-8."""
    if not isinstance(data, bytes | bytearray):
        return data
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return {"hex": bytes(data).hex()}


def bytes_of(text: str | None) -> bytes | None:
    """Return a key or a value of the protocol as the bytes that a client takes."""
    return None if text is None else text.encode()


def partition_of(key: str) -> tuple[str, int]:
    """Split ``foo-0`` into topic and partition."""
    topic, _, index = key.rpartition("-")
    return topic, int(index)


def key_of(partition: Any) -> str:
    """Return ``foo-0`` for a partition with a topic and a number."""
    return f"{get(partition, 'topic')}-{get(partition, 'partition')}"


def rule_parts(rule: str) -> tuple[str, str, str, str, str]:
    """Split ``allow User:alice read topic:foo`` into the permission, the principal, the operation,
    and the resource's kind and name."""
    permission, principal, operation, resource = rule.split()
    kind, _, name = resource.partition(":")
    return permission, principal, operation, kind, name


def rule_text(permission: Any, principal: Any, operation: Any, kind: Any, name: Any) -> str:
    """Return an access rule as a text; the parts but principal and name are members of enums."""
    words = [str(get(each, "name") or each).lower() for each in (permission, operation, kind)]
    return f"{words[0]} {principal} {words[1]} {words[2]}:{name}"


def keys_of(partitions: Any) -> list[str]:
    """Return partitions with a topic and a number as texts, in order."""
    return [
        f"{topic}-{index}"
        for topic, index in sorted(
            (get(each, "topic"), get(each, "partition")) for each in partitions
        )
    ]


def place_of(record: Any) -> dict[str, Any]:
    """Return where a record is, from its attributes ``topic``, ``partition`` and ``offset``."""
    return {name: get(record, name) for name in ("topic", "partition", "offset")}


def record_outcome(found: Any, described: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Return the outcome of a record: of PENDING, of what the client raised, or of what it returned
    in its place."""
    if found is PENDING:
        return dict(PENDING)
    if isinstance(found, Raised):
        return described(found.error)
    return place_of(found)


def record_of(record: Any) -> dict[str, Any]:
    """Return a record that a consumer returned, from its attributes."""
    return {
        **place_of(record),
        "timestamp": get(record, "timestamp"),
        "key": text_of(record.key),
        "value": text_of(record.value),
        "headers": header_texts(record.headers),
    }


def given_headers(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the argument for a record's headers, as the Python clients take it; nothing without
    headers."""
    headers = record.get("headers")
    return {"headers": [(name, bytes_of(value)) for name, value in headers]} if headers else {}


def header_texts(headers: Any) -> list[list[Any]]:
    """Return the headers of a record that a consumer returned."""
    return [[name, text_of(value)] for name, value in headers or ()]


def get(value: Any, *path: Any) -> Any:
    """Return the item or attribute at ``path``; None if the client's return value lacks it."""
    for name in path:
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(name, int) and isinstance(value, list | tuple):
            value = value[name] if name < len(value) else None
        else:
            value = getattr(value, name, None) if isinstance(name, str) else None
    return value


def elements(value: Any) -> list[Any]:
    """Return a list's items; none if the client returned something else, which ``raw`` then
    shows."""
    return list(value) if isinstance(value, list | tuple | set | frozenset) else []


def ascending(values: Any) -> list[Any]:
    """Sort values of any types that the client may return."""
    return sorted(values, key=lambda value: (isinstance(value, str), value is not None, value))
