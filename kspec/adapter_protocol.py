"""The adapters' protocol: its calls with their members and results, and how an answer is read.

``ADAPTER_CALLS`` is the one declaration of the calls. The table in docs/reference/adapters.md is
made from it, cases may use its calls, and ``read_answer`` refuses whatever does not have the shape
that it gives. No I/O: ``runner.adapters`` owns the processes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from kspec.answers import Answer
from kspec.errors import AdapterFault

__all__ = [
    "ADAPTER_CALLS",
    "AdapterCall",
    "ByKey",
    "Listed",
    "Plain",
    "empty_result",
    "read_answer",
    "read_line",
    "shown",
]

_MOST_LEVELS: Final = 64
_MOST_SHOWN: Final = 200
_REFERENCE: Final = "`kspec help adapters` describes the protocol"


class Row(msgspec.Struct, frozen=True):
    """A part of a result. Members that are not declared are ignored, and a client may have decoded
    null for any value."""


class ErrorRow(Row, frozen=True):
    """The members of an error."""

    error: str | None
    code: int | None = None
    message: str | None = None
    kind: str | None = None
    at: str | None = None
    cause: ErrorRow | None = None
    errors: list[ErrorRow] | None = None


class ClusterRow(Row, frozen=True):
    brokers: list[int | None]
    controller: int | None


class PartitionRow(Row, frozen=True):
    leader: int | None = None
    replicas: list[int | None] | None = None
    isr: list[int | None] | None = None


class GroupList(Row, frozen=True):
    groups: list[str | None]
    errors: list[ErrorRow] | None = None


class GroupRow(Row, frozen=True):
    state: str | None = None
    members: int | None = None


class ReassignmentRow(Row, frozen=True):
    replicas: list[int | None] | None = None
    adding: list[int | None] | None = None
    removing: list[int | None] | None = None


class ProducedRow(Row, frozen=True):
    """The outcome of a produced record; ``pending`` is True until there is one."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    base_offset: int | None = None
    pending: bool = False


class ConsumedRow(Row, frozen=True):
    topic: str
    partition: int
    offset: int | None = None
    timestamp: float | None = None
    key: str | dict[str, str] | None = None
    value: str | dict[str, str] | None = None
    headers: list[tuple[str | None, str | dict[str, str] | None]] | None = None
    delivery_count: int | None = None


@dataclass(frozen=True, slots=True)
class Plain:
    """A result of this type."""

    type: Any


@dataclass(frozen=True, slots=True)
class ByKey:
    """An object by topic, partition or the like. Each value is of this type, or an error."""

    item: Any


@dataclass(frozen=True, slots=True)
class Listed:
    """A list. Each item is of this type, or an error."""

    item: Any


Shape: TypeAlias = Plain | ByKey | Listed

_NOTHING: Final = Plain(None)
_NAMES: Final = Plain(list[str | None])
_OUTCOMES: Final = ByKey(None)
_OFFSETS: Final = ByKey(int | None)


@dataclass(frozen=True, slots=True)
class AdapterCall:
    """A call: the shape of its result, which may always be null, and its members and result in
    words, as Markdown. A step of a case cannot make it unless ``in_cases``."""

    name: str
    shape: Shape
    members: str
    result: str
    in_cases: bool = True


ADAPTER_CALLS: Final = (
    AdapterCall(
        "connect",
        _NOTHING,
        '`bootstrap`, `timeout_ms`, `client_id`, optionally `sasl: {"mechanism", '
        '"username", "password"}` and `tls: {"ca", "certificate", "key"}`, paths of PEM '
        "files, of which the last two may be absent",
        "null. Makes the client; it may connect at the first call",
        in_cases=False,
    ),
    AdapterCall("close", _NOTHING, "", "null", in_cases=False),
    AdapterCall(
        "describe_cluster",
        Plain(ClusterRow),
        "",
        '`{"brokers": [ids, ascending], "controller": id}`, -1 for none',
    ),
    AdapterCall(
        "describe_topics",
        ByKey(dict[str, PartitionRow | None]),
        "`topics`: names",
        '`{"foo": {"0": {"leader", "replicas", "isr"}}}`, or an error in place of a topic',
    ),
    AdapterCall("list_topics", _NAMES, "", "names, ascending"),
    AdapterCall(
        "create_topics",
        _OUTCOMES,
        '`topics`: `{"foo": {"partitions": 1, "replication_factor": 1}}`, both 1 by '
        "default; optionally `validate_only`: true",
        "by topic: null or an error",
    ),
    AdapterCall(
        "create_partitions",
        _OUTCOMES,
        '`counts`: `{"foo": 3}`, the new counts',
        "by topic: null or an error",
    ),
    AdapterCall("delete_topics", _OUTCOMES, "`topics`: names", "by topic: null or an error"),
    AdapterCall(
        "delete_records",
        _OUTCOMES,
        '`offsets`: `{"foo-0": 5}`, the offsets before which records are deleted',
        "by partition: null or an error",
    ),
    AdapterCall(
        "list_offsets",
        _OFFSETS,
        '`times`: `{"foo-0": "latest"}`, or `"earliest"`, or a timestamp in ms',
        '`{"foo-0": 5}`, or an error in place of an offset',
    ),
    AdapterCall(
        "describe_configs",
        ByKey(dict[str, str | None]),
        '`resources`: `["topic:foo", "broker:1"]`',
        '`{"topic:foo": {"retention.ms": "1000"}}`, or an error in place of a resource',
    ),
    AdapterCall(
        "alter_configs",
        _OUTCOMES,
        '`configs`: `{"topic:foo": {"retention.ms": "1000"}}`, null to remove one. By the '
        "client's call for single configs; a client that can only replace all configs of a "
        "resource answers `unsupported`",
        "by resource: null or an error",
    ),
    AdapterCall(
        "list_groups",
        Plain(GroupList),
        "optionally `states` and `types`: lists of names as in the protocol, such as "
        "`Stable` and `consumer`",
        '`{"groups": [ids, ascending], "errors": [...]}`; `errors` are those of brokers '
        "that the client reports beside the groups of others",
    ),
    AdapterCall(
        "describe_groups",
        ByKey(GroupRow),
        "`groups`: ids",
        '`{"g": {"state", "members"}}`, the number of members, or an error in place of a group',
    ),
    AdapterCall("delete_groups", _OUTCOMES, "`groups`: ids", "by group: null or an error"),
    AdapterCall(
        "delete_offsets",
        _OUTCOMES,
        "`group`; `partitions`: a list",
        "by partition: null or an error",
    ),
    AdapterCall(
        "alter_offsets",
        _OUTCOMES,
        '`group`; `offsets`: `{"foo-0": 5}`, committed by an administrator, not a member',
        "by partition: null or an error",
    ),
    AdapterCall(
        "create_acls",
        _OUTCOMES,
        "`acls`: access rules as texts, below",
        "by rule: null or an error",
    ),
    AdapterCall(
        "describe_acls",
        _NAMES,
        "`filter`: such a text, with `any` for a part",
        "the rules that it matches, ascending",
    ),
    AdapterCall(
        "delete_acls", _OUTCOMES, "`filters`: a list of them", "by filter: null or an error"
    ),
    AdapterCall(
        "describe_log_dirs",
        ByKey(list[str | None]),
        "`brokers`: ids",
        '`{"1:/data": ["foo-0"]}`: the partitions by broker and directory, or an error in '
        'place of them; `{"1": {"error": ...}}` if a broker gives only an error',
    ),
    AdapterCall(
        "alter_log_dirs",
        _OUTCOMES,
        '`moves`: `{"1:foo-0": "/data"}`, the directory by broker and partition',
        "by broker and partition: null or an error",
    ),
    AdapterCall(
        "alter_quotas",
        _OUTCOMES,
        '`quotas`: `{"user:alice": {"producer_byte_rate": 1000}}`, null to remove one; '
        "`user:` is the default user",
        "by entity: null or an error",
    ),
    AdapterCall(
        "describe_quotas",
        ByKey(dict[str, float | None]),
        "`filter`: an entity, or `user:*` for all that have a name; others than these are left out",
        '`{"user:alice": {"producer_byte_rate": 1000}}`',
    ),
    AdapterCall(
        "alter_reassignments",
        _OUTCOMES,
        '`assignments`: `{"foo-0": [4, 5, 6]}`, null to cancel; optionally '
        "`allow_replication_factor_change`: false (KIP-860)",
        "by partition: null or an error",
    ),
    AdapterCall(
        "list_reassignments",
        ByKey(ReassignmentRow),
        "`partitions`: a list, or null for all",
        '`{"foo-0": {"replicas", "adding", "removing"}}`',
    ),
    AdapterCall(
        "elect_leaders",
        _OUTCOMES,
        "`type`: `preferred` or `unclean`; `partitions`: a list, or null for all",
        "by partition: null or an error",
    ),
    AdapterCall(
        "produce",
        Listed(ProducedRow),
        '`records`: `[{"topic", "partition", "key", "value", "headers"}]`; `partition`, `key` '
        "and `headers` may be absent, texts are UTF-8, and headers are pairs in their order: "
        '`[["name", "value"], ["name", null]]`',
        'a list with an outcome per record, in their order: `{"topic", "partition", '
        '"offset"}` as the client gives them, or an error. `base_offset` in place of '
        "`offset` if the client has only that of the batch",
    ),
    AdapterCall(
        "send",
        _NOTHING,
        "`records`, as for `produce`",
        "null. Hands the records over and waits for no outcome",
    ),
    AdapterCall(
        "begin_transaction",
        _NOTHING,
        "",
        "null. The first one makes the producer and gets its id and epoch, where that is a "
        "call of its own",
    ),
    AdapterCall(
        "send_offsets",
        _NOTHING,
        '`offsets`: `{"foo-0": 5}`',
        "null. Makes the offsets a part of the transaction, for the group of the adapter's "
        "own consumer and with what that consumer knows of its membership (KIP-447), if the"
        " client takes it",
    ),
    AdapterCall(
        "commit_transaction",
        _NOTHING,
        "",
        "null. If the client leaves flushing or dropping records to its caller, the adapter"
        " does it first, as the client's documentation says",
    ),
    AdapterCall(
        "abort_transaction",
        _NOTHING,
        "",
        "null. If the client leaves flushing or dropping records to its caller, the adapter"
        " does it first, as the client's documentation says",
    ),
    AdapterCall(
        "assign",
        _NOTHING,
        '`offsets`: `{"foo-0": 5}`, where to start; null leaves it to the client',
        "null",
    ),
    AdapterCall(
        "seek",
        _NOTHING,
        '`offsets`: `{"foo-0": 5}`, where to go on; of partitions that the consumer has',
        "null",
    ),
    AdapterCall(
        "pause",
        _NOTHING,
        "`partitions`: a list",
        "null. Until `resume`, `poll` returns nothing of them",
    ),
    AdapterCall("resume", _NOTHING, "`partitions`: a list", "null"),
    AdapterCall(
        "subscribe",
        _NOTHING,
        "`topics`: names; or `pattern`: a regular expression that begins with `^`",
        "null",
    ),
    AdapterCall("unsubscribe", _NOTHING, "", "null"),
    AdapterCall(
        "assignment",
        _NAMES,
        "",
        'the partitions that the consumer has now, ascending: `["foo-0", "foo-1"]`',
    ),
    AdapterCall(
        "poll",
        Plain(list[ConsumedRow]),
        "`records`: how many to wait for; `ms`: how long",
        'a list of records in the order in which the client returned them: `{"topic", '
        '"partition", "offset", "timestamp", "key", "value", "headers"}`, the timestamp in '
        "ms and -1 for none, headers as in `produce`, and more records if the client "
        "returned more. Of a share group records have their `delivery_count`, too, and with "
        "explicit acknowledgement the first records end the call",
    ),
    AdapterCall(
        "acknowledge",
        _NOTHING,
        '`records`: `{"foo-0": {"3": "release"}}`, by partition and offset `accept`, `release` or '
        "`reject`; of a consumer of a share group",
        "null. `commit` without offsets sends the acknowledgements and has their outcomes",
    ),
    AdapterCall("position", _OFFSETS, "`partitions`: a list", '`{"foo-0": 5}`'),
    AdapterCall(
        "commit",
        _OUTCOMES,
        '`offsets`: `{"foo-0": 5}`, or null for the positions',
        "by partition: null or an error",
    ),
    AdapterCall(
        "committed", _OFFSETS, "`partitions`: a list", '`{"foo-0": 5}`, as the client returns it'
    ),
    AdapterCall(
        "process",
        _NOTHING,
        "`from`: names of topics; `to`: a topic; `guarantee`: `at_least_once` or `exactly_once`",
        "null. Starts to read the topics as a member of the consumer's group, to write each"
        " record as it is to the partition of the same number, and to commit what was read:"
        " with `exactly_once` in transactions under an id that the client chooses. `poll` "
        "then returns what was read, and `commit` has what was processed committed, or "
        "waits for that. For a client that does this by itself, as Kafka Streams and the "
        "GroupTransactSession of franz-go do",
    ),
    AdapterCall(
        "close_consumer",
        _NOTHING,
        "",
        "null. Closes the consumer as an application does when it is done, within "
        "`timeout_ms`; the next call of a consumer makes another",
    ),
    AdapterCall(
        "together",
        Plain(list[dict[str, Any]]),
        '`calls`: a list of calls, `{"op": "list_reassignments", ...}`',
        "a list of their answers, each with its `ok`, in that order. Start all before any "
        "is answered. A client for one caller at a time answers `unsupported`",
        in_cases=False,
    ),
)
"""Every call, in the order of the documentation."""

_SHAPES: Final = {each.name: each.shape for each in ADAPTER_CALLS}


class _ReplyRow(Row, frozen=True):
    """An answer. ``ok`` is absent if the client lacks the call, or if the adapter failed."""

    ok: bool | None = None
    result: Any = None
    raw: str | None = None
    unsupported: str | None = None
    error: str | None = None
    code: int | None = None
    message: str | None = None
    kind: str | None = None
    at: str | None = None
    cause: ErrorRow | None = None
    errors: list[ErrorRow] | None = None
    partitions: dict[str, ErrorRow | None] | None = None
    records: list[ConsumedRow] | None = None


def empty_result(op: str) -> Any:
    """Return an object or a list without items, or null if the call's result is neither."""
    choices: tuple[Any, ...] = ({}, [])
    for empty in choices:
        try:
            _check(_SHAPES[op], empty)
        except (KeyError, ValueError):
            continue
        return empty
    return None


# ---- a line --------------------------------------------------------------------------------------


def read_line(line: bytes) -> dict[str, Any]:
    """Return the object of a line. Raises AdapterFault for one that is not of the protocol."""
    try:
        found = json.loads(
            line.decode(), object_pairs_hook=_object, parse_constant=_refuse, parse_float=_float
        )
        if not isinstance(found, dict):
            raise ValueError("it is not an object")
        for text in _texts(found):
            text.encode()
    except RecursionError:
        problem = "it is nested too deeply"
    except UnicodeEncodeError:
        problem = "it has half of a surrogate pair"
    except UnicodeDecodeError:
        problem = "it is not UTF-8"
    except json.JSONDecodeError as error:
        problem = f"it is not JSON: {error.msg}"
    except ValueError as error:
        problem = str(error)
    else:
        return found
    raise AdapterFault(f"not a line of the protocol: {problem}: {shown(line)}; {_REFERENCE}")


def shown(line: bytes | str) -> str:
    """Return a line as printable ASCII, shortened."""
    data = line if isinstance(line, bytes) else line.encode("utf-8", "backslashreplace")
    text = ascii(data[:_MOST_SHOWN])[1:]
    more = f" and {len(data) - _MOST_SHOWN} more bytes" if len(data) > _MOST_SHOWN else ""
    return f"{text}{more}"


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a member is there twice")
    return found


def _refuse(name: str) -> Any:
    raise ValueError(f"it has {name}, which is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large")
    return value


def _texts(value: Any) -> Iterator[str]:
    """Yield every text. Raises ValueError if it is nested too deeply."""
    level = [value]
    for _ in range(_MOST_LEVELS):
        if not level:
            return
        below: list[Any] = []
        for each in level:
            if isinstance(each, str):
                yield each
            elif isinstance(each, dict):
                yield from each
                below += each.values()
            elif isinstance(each, list):
                below += each
        level = below
    raise ValueError("it is nested too deeply")


# ---- an answer -----------------------------------------------------------------------------------


def read_answer(op: str, reply: Mapping[str, Any]) -> Answer:
    """Return the answer to a call. Raises AdapterFault if it does not have the call's shape, or if
    it reports an error of the adapter itself."""
    try:
        if not isinstance(reply, Mapping):
            raise ValueError("it is not an object")
        if "adapter_error" not in reply:
            msgspec.convert(reply, _ReplyRow)
            if reply.get("ok") is True and op in _SHAPES:
                _check(_SHAPES[op], reply.get("result"))
            if reply.get("ok") is None and reply.get("unsupported") is None:
                raise ValueError('neither "ok" nor "unsupported"')
    except ValueError as error:
        problem = str(error).replace("`", "")
        raise AdapterFault(
            f"not a line of the protocol: the answer to {op}: {problem}: "
            f"{shown(json.dumps(reply))}; {_REFERENCE}"
        ) from None
    return Answer.of(reply)


def _check(shape: Shape, result: Any) -> None:
    """Raises ValueError, of which msgspec's errors are a kind."""
    if result is None:
        return
    if isinstance(shape, Plain):
        msgspec.convert(result, shape.type)
        return
    if isinstance(shape, ByKey):
        items: Mapping[Any, Any] = msgspec.convert(result, dict[str, Any])
    else:
        items = dict(enumerate(msgspec.convert(result, list[Any])))
    for key, item in items.items():
        kind = ErrorRow if isinstance(item, Mapping) and "error" in item else shape.item
        try:
            msgspec.convert(item, kind)
        except msgspec.ValidationError as error:
            raise ValueError(f"{error} of result[{key!r:.40}]") from None
