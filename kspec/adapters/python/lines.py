"""The adapter's side of the adapter protocol: JSON lines in on stdin, JSON lines out on stdout.

This module knows the lines and how an exception becomes an answer. docs/reference/adapters.md
documents the protocol. The adapters in Node, Java and Go use the same lines::

    -> {"op": "connect", "bootstrap": "127.0.0.1:9092", "timeout_ms": 2000, "client_id": "kspec"}
    <- {"ok": true, "result": null, "raw": "None"}
    -> {"op": "alter_reassignments", "assignments": {"foo-0": [4, 5, 6], "foo-1": null}}
    <- {"ok": true, "result": {"foo-0": null, "foo-1": {"error": "...", "code": 85, ...}}, ...}
    <- {"ok": false, "error": "KafkaTimeoutError", "code": null, "message": "..."}
    <- {"unsupported": "aiokafka has no call for it"}
    <- {"adapter_error": {"error": "KeyError", "message": "...", "at": "lines.py by_topic"}}

The first line out is the greeting. An adapter calls its client inside ``with client_call():``. An
exception raised there is the client's answer; any other is an error of the adapter.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = [
    "PENDING",
    "Adapter",
    "Failure",
    "Operation",
    "Raised",
    "Returned",
    "Unsupported",
    "answered",
    "ascending",
    "by_topic",
    "bytes_of",
    "chosen",
    "classic_only",
    "client_call",
    "data_operations",
    "elements",
    "get",
    "keys_of",
    "outcome",
    "outcome_seconds",
    "partition_of",
    "place_of",
    "polled",
    "record_of",
    "record_outcome",
    "rule_parts",
    "rule_text",
    "secured",
    "serve",
    "text_of",
]

Operation = Callable[[dict[str, Any]], "Returned"]


@dataclass(frozen=True, slots=True)
class Returned:
    """What the client returned, and the equivalent result of the adapter protocol."""

    raw: Any
    result: Any


class Unsupported(Exception):
    """The client has no public call for this operation."""


class Raised(Exception):
    """The client raised ``error``. ``records`` are those that it had returned before, and
    ``partitions`` those that the error names, each with its outcome."""

    def __init__(
        self,
        error: Exception,
        records: list[dict[str, Any]] | None = None,
        partitions: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.records = records or []
        self.partitions = partitions or {}


class Failure(Exception):
    """An error that the client returned instead of raising. ``name`` is the client's own name for
    it."""

    def __init__(self, name: str, code: int | None, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.code = code


@contextmanager
def client_call() -> Iterator[None]:
    """Encloses each call of the client and nothing else: an exception raised inside is the client's
    answer."""
    try:
        yield
    except Exception as error:
        raise Raised(error) from error


class Adapter(Protocol):
    """What ``serve`` needs.

    ``connect`` makes the client and may leave connecting to the first call. ``close`` may be called
    twice, or without ``connect``. ``options`` are those that differ from the client's defaults.
    """

    client: str
    version: str

    def options(self) -> Mapping[str, Any]: ...

    def connect(self, call: dict[str, Any]) -> Returned: ...

    def close(self) -> None: ...

    def operations(self) -> Mapping[str, Operation]: ...


def serve(
    adapter: Adapter,
    described: Callable[[Exception], dict[str, Any]] | None = None,
    connects: Collection[str] = (),
) -> None:
    """Write the greeting, then answer every line of stdin. ``described`` turns the client's
    exception into the members of an answer; ``connects`` names members of ``connect`` that not
    every adapter takes."""

    def close(_call: dict[str, Any]) -> Returned:
        adapter.close()
        return Returned(None, None)

    operations: dict[str, Operation] = {
        "connect": adapter.connect,
        "close": close,
        **adapter.operations(),
    }
    _write(
        {
            "client": adapter.client,
            "version": adapter.version,
            "language": "python",
            "capabilities": sorted(adapter.operations()),
            "connect": sorted(connects),
            "options": {name: str(value) for name, value in adapter.options().items()},
        }
    )
    for line in sys.stdin:
        _write(_answer(operations, json.loads(line), described or outcome))
    adapter.close()


def _answer(
    operations: Mapping[str, Operation],
    call: dict[str, Any],
    described: Callable[[Exception], dict[str, Any]],
) -> dict[str, Any]:
    operation = operations.get(call["op"])
    if operation is None:
        return {"unsupported": f"no public call for {call['op']!r}"}
    return answered(lambda: operation(call), described)


def answered(
    work: Callable[[], Returned], described: Callable[[Exception], dict[str, Any]]
) -> dict[str, Any]:
    """Return the answer to a call."""
    try:
        returned = work()
        answer = {"ok": True, "result": returned.result, "raw": repr(returned.raw)}
        json.dumps(answer)  # a result that is not JSON is the adapter's error too
        return answer
    except Unsupported as error:
        return {"unsupported": str(error)}
    except Raised as raised:
        more = {"records": raised.records, "partitions": raised.partitions}
        given = {name: value for name, value in more.items() if value}
        return {"ok": False, **described(raised.error), **given, "raw": repr(raised.error)}
    except Failure as failure:
        return {"ok": False, **outcome(failure)}
    except Exception as error:
        return {"adapter_error": outcome(error)}


def outcome(error: BaseException) -> dict[str, Any]:
    """Describe an error: its class, Kafka's code if it shows one, its message, and its cause.

    A cause that already occurred in the chain, as with ``raise error from error``, is left out.
    """
    return _outcome(error, frozenset())


def _outcome(error: BaseException, before: frozenset[int]) -> dict[str, Any]:
    if isinstance(error, Failure):
        return {"error": error.name, "code": error.code, "message": str(error)}
    outcome: dict[str, Any] = {
        "error": type(error).__name__,
        "code": _kafka_code(error),
        "message": str(error),
    }
    stack = traceback.extract_tb(error.__traceback__)
    if stack:
        outcome["at"] = f"{_short(stack[-1].filename)} {stack[-1].name}"
    seen = before | {id(error)}
    if error.__cause__ is not None and id(error.__cause__) not in seen:
        outcome["cause"] = _outcome(error.__cause__, seen)
    return outcome


def _short(path: str) -> str:
    """Return the path from an installed package's folder on, or the file's name."""
    _, installed, rest = path.replace("\\", "/").rpartition("site-packages/")
    return rest if installed else rest.rpartition("/")[2]


def _kafka_code(error: BaseException) -> int | None:
    """kafka-python and aiokafka call the code ``errno``, a name that OSError uses for its own."""
    code = getattr(error, "errno", None)
    return code if isinstance(code, int) and not isinstance(error, OSError) else None


def by_topic(keys: Any) -> dict[str, list[int]]:
    """Group ``["foo-0", "foo-1"]`` as ``{"foo": [0, 1]}``."""
    found: dict[str, list[int]] = {}
    for key in keys:
        topic, partition = partition_of(key)
        found.setdefault(topic, []).append(partition)
    return found


def secured(call: Mapping[str, Any]) -> str:
    """Return Kafka's name of the security protocol that ``connect`` asks for."""
    over = "SSL" if "tls" in call else "PLAINTEXT"
    return f"SASL_{over}" if "sasl" in call else over


class _DataClients(Protocol):
    """A producer and a consumer."""

    def operations(self) -> Mapping[str, Operation]: ...


DATA_CALLS = (
    "produce", "send", "begin_transaction", "send_offsets", "commit_transaction",
    "abort_transaction", "assign", "subscribe", "unsubscribe", "assignment", "poll", "position",
    "commit", "committed", "close_consumer",
)  # fmt: skip


def data_operations(data: Callable[[], _DataClients | None]) -> dict[str, Operation]:
    """Return the operations of a producer and a consumer that ``connect`` makes anew."""

    def operation(name: str) -> Operation:
        def perform(call: dict[str, Any]) -> Returned:
            clients = data()
            assert clients is not None, "connect comes first"
            return clients.operations()[name](call)

        return perform

    return {name: operation(name) for name in DATA_CALLS}


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
    """Return a key or a value as text, or as ``{"hex": ...}`` if it is no UTF-8."""
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


def record_outcome(found: Any) -> dict[str, Any]:
    """Return the outcome of a record: of PENDING, of what the client raised, or of what it returned
    in its place."""
    if found is PENDING:
        return dict(PENDING)
    if isinstance(found, Raised):
        return outcome(found.error)
    return place_of(found)


def record_of(record: Any) -> dict[str, Any]:
    """Return a record that a consumer returned, from its attributes."""
    return {
        **place_of(record),
        "timestamp": get(record, "timestamp"),
        "key": text_of(record.key),
        "value": text_of(record.value),
    }


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


def _write(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
