"""The format of journals: frames on the wire, with their times and connections.

An entry keeps the raw bytes and is decoded on reading, so that writing it costs almost nothing on a
broker's hot path and frames that no codec accepts are kept too. This module knows no sockets, no
files (it reads and writes text files that the caller opened) and no clock (times are arguments:
nanoseconds since the Unix epoch, or of a virtual clock).

As text a journal is JSON lines: one entry per line, without fields at their defaults, ``raw`` in
base64.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypedDict, Unpack, cast

import msgspec

from kproto.codec.message import Buffer, Message
from kproto.codec.registry import schema_of
from kproto.dialects import Dialect, dialect
from kproto.errors import DecodeError, KprotoError
from kproto.framing import SIZE_LENGTH
from kproto.safe_text import printable, printable_json
from kproto.schema.model import Struct

__all__ = [
    "CLOSED_BY_BROKER",
    "CLOSED_BY_CLIENT",
    "DEFAULT_MAX_BYTES",
    "DEFAULT_MAX_ENTRIES",
    "UPSTREAM_ANSWER",
    "ClientSoftware",
    "DecodedEntry",
    "Direction",
    "Entry",
    "EntryFilters",
    "Journal",
    "JournalWriter",
    "body_value",
    "describe",
    "read_journal",
    "select",
    "squash",
]

Direction: TypeAlias = Literal["request", "response", "event"]
"""``event``: an entry without a frame, such as a connection or its end."""

CLOSED_BY_CLIENT: Final = "by the client"
CLOSED_BY_BROKER: Final = "by the broker"
"""Notes of ``disconnected``: which side closed. For a reset, the note is the operating system's
text."""

UPSTREAM_ANSWER: Final = "upstream-answer"
"""The event with a broker's answer that a proxy's fault rule then changed."""

DEFAULT_MAX_ENTRIES: Final = 100_000
"""The limit of a journal's entries."""

DEFAULT_MAX_BYTES: Final = 64 * 1024 * 1024
"""The limit of a journal's frames, client ids and notes."""

_API_VERSIONS_KEY: Final = 18
_UNSUPPORTED_VERSION: Final = b"\0\x23"


class ClientSoftware(msgspec.Struct, frozen=True):
    """The client's name and version from ApiVersions (KIP-511, version 3 and up)."""

    name: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}".rstrip()


class Entry(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One frame or one event on one connection.

    ``sequence`` counts from 1 over a whole journal. ``raw`` is the frame as on the socket, size
    included; for an event it is the frame that the event is about, or empty. ``event`` names what
    happened (``connected``, ``disconnected``, ``unsupported``, ``unimplemented``, ``malformed``,
    ``sasl-token``, the name of a fault); it may also mark an unusual request or response.
    ``api_version`` is the version of the bytes: 0 for an ApiVersions response that reports an
    unsupported version. ``listener`` names the broker's listener, and is empty for the only one of
    a broker whose configs name none.
    """

    sequence: int
    timestamp_ns: int
    broker_id: int
    connection_id: int
    direction: Direction
    peer: str = ""
    api_key: int | None = None
    api_version: int | None = None
    correlation_id: int | None = None
    client_id: str | None = None
    client_software: ClientSoftware | None = None
    dialect: str = "kafka"
    raw: bytes = b""
    event: str = ""
    note: str = ""
    listener: str = ""

    def decode(self, using: Dialect | None = None) -> DecodedEntry:
        """Decode header and body with ``using``, or else with the entry's dialect. Never raises
        because of the entry's bytes: an error is returned as ``DecodedEntry.error``."""
        if not self.raw or self.api_key is None or self.api_version is None:
            return _NOTHING
        try:
            codec = using if using is not None else dialect(self.dialect)
            if self.direction == "response" or self.event == UPSTREAM_ANSWER:
                return _decode_response(codec, self.raw, self.api_key, self.api_version)
            return DecodedEntry(*codec.decode_request(self.raw), self.api_version)
        except KprotoError as error:
            return DecodedEntry(error=error)


class DecodedEntry(NamedTuple):
    """The content of an entry. ``version`` is the body's. All are None if there is nothing to
    decode."""

    header: Any = None
    body: Any = None
    version: int | None = None
    error: KprotoError | None = None


_NOTHING: Final = DecodedEntry()


def _decode_response(codec: Dialect, raw: bytes, api_key: int, version: int) -> DecodedEntry:
    """Decode a response. A journal made from a capture has only the request's version, but
    ApiVersions error 35 is always in version 0 (KIP-511)."""
    try:
        return DecodedEntry(
            *codec.decode_response(raw, api_key=api_key, api_version=version), version
        )
    except DecodeError:
        code_at = SIZE_LENGTH + 4
        is_refusal = raw[code_at : code_at + 2] == _UNSUPPORTED_VERSION
        if api_key != _API_VERSIONS_KEY or version == 0 or not is_refusal:
            raise
        return DecodedEntry(*codec.decode_response(raw, api_key=api_key, api_version=0), 0)


class EntryFilters(TypedDict, total=False):
    """The filters of ``select``, without ``after``."""

    broker_id: int | None
    connection_id: int | None
    api: int | str | None
    client_software: str | None
    client_id: str | None
    direction: Direction | None
    event: str | None
    listener: str | None


class _Run:
    """Entries that differ in their sequence and correlation id alone, from ``ids[place]`` on; each
    counts ``size`` bytes."""

    __slots__ = ("_head", "_ids", "_sequence", "_tail", "place", "size")

    def __init__(
        self,
        sequence: int,
        ids: Sequence[int],
        place: int,
        size: int,
        head: tuple[int, int, int, Direction, str, int, int],
        tail: tuple[str | None, ClientSoftware | None, str],
    ) -> None:
        self._sequence = sequence
        self._ids = ids
        self.place = place
        self.size = size
        self._head = head
        self._tail = tail

    def __len__(self) -> int:
        return len(self._ids) - self.place

    def __iter__(self) -> Iterator[Entry]:
        for place in range(self.place, len(self._ids)):
            yield Entry(self._sequence + place, *self._head, self._ids[place], *self._tail)


class _InParts:
    """An entry whose bytes are still buffers that follow each other. It counts ``size`` bytes."""

    __slots__ = ("_entry", "_parts", "size")

    def __init__(self, entry: Entry, parts: Sequence[Buffer]) -> None:
        # A view keeps the whole object that it shows: one that shows little of it is copied.
        self._parts = [
            bytes(each)
            if type(each) is memoryview and 2 * len(each) < memoryview(each.obj).nbytes
            else each
            for each in parts
        ]
        self._entry = entry
        self.size = sum(map(len, parts)) + _size(entry)

    def __iter__(self) -> Iterator[Entry]:
        yield msgspec.structs.replace(self._entry, raw=b"".join(self._parts))


_EMPTY_PLACES: Final = 64
"""So many entries may be dropped before the others are moved to the front."""


class Journal:
    """A bounded ring of entries that drops the oldest first.

    ``max_entries`` and ``max_bytes`` both bound it, but the newest entry is always kept. Bytes
    include raw frames and the characters of client ids and notes, which peers choose too.
    ``dropped`` and ``dropped_bytes`` count what was dropped. ``sink`` is called with every new
    entry before anything is dropped: a ``JournalWriter.write``, for example. Functions added by
    ``listening`` are called after each new entry.
    """

    def __init__(
        self,
        *,
        max_entries: int = DEFAULT_MAX_ENTRIES,
        max_bytes: int = DEFAULT_MAX_BYTES,
        sink: Callable[[Entry], object] | None = None,
    ) -> None:
        if max_entries < 1 or max_bytes < 0:
            raise ValueError("max_entries must be at least 1, and max_bytes must not be negative")
        self.max_entries = max_entries
        self.max_bytes = max_bytes
        self.sink = sink
        self.dropped = 0
        self.dropped_bytes = 0
        self._entries: list[Entry | _Run | _InParts | None] = []
        self._front = 0
        """How many places at the front are empty; they go when they are half of all."""
        self._made_end = 0
        """Before this place, every entry is an object of its own."""
        self._count = 0
        self._bytes = 0
        self._sequence = 0
        self._listeners: tuple[Callable[[], object], ...] = ()

    def record(
        self,
        timestamp_ns: int,
        broker_id: int,
        connection_id: int,
        direction: Direction,
        peer: str = "",
        api_key: int | None = None,
        api_version: int | None = None,
        correlation_id: int | None = None,
        client_id: str | None = None,
        client_software: ClientSoftware | None = None,
        dialect: str = "kafka",
        raw: bytes = b"",
        event: str = "",
        note: str = "",
        listener: str = "",
    ) -> Entry:
        """Append one entry and number it. Fields are as in ``Entry``; they are positional for the
        hot path."""
        self._sequence += 1
        entry = Entry(
            self._sequence, timestamp_ns, broker_id, connection_id, direction, peer, api_key,
            api_version, correlation_id, client_id, client_software, dialect, raw, event, note,
            listener,
        )  # fmt: skip
        self._entries.append(entry)
        self._count += 1
        self._bytes += len(raw) + len(note) + (0 if client_id is None else len(client_id))
        if self.sink is not None:
            self.sink(entry)
        if self._bytes > self.max_bytes or self._count > self.max_entries:
            self._drop()
        for call in self._listeners:
            call()
        return entry

    def record_parts(
        self,
        parts: Sequence[Buffer],
        timestamp_ns: int,
        broker_id: int,
        connection_id: int,
        direction: Direction,
        peer: str,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None = None,
        client_software: ClientSoftware | None = None,
        dialect: str = "kafka",
        event: str = "",
        note: str = "",
        listener: str = "",
    ) -> None:
        """Append one entry, as ``record`` does, whose ``raw`` are these buffers one after another.
        They are joined when the entry is read, and must not change. Views may keep up to
        twice the memory that ``max_bytes`` counts for them."""
        if self.sink is not None or self._listeners:
            self.record(
                timestamp_ns, broker_id, connection_id, direction, peer, api_key, api_version,
                correlation_id, client_id, client_software, dialect, b"".join(parts), event, note,
                listener,
            )  # fmt: skip
            return
        self._sequence += 1
        entry = Entry(
            self._sequence, timestamp_ns, broker_id, connection_id, direction, peer, api_key,
            api_version, correlation_id, client_id, client_software, dialect,
            event=event, note=note, listener=listener,
        )  # fmt: skip
        held = _InParts(entry, parts)
        self._entries.append(held)
        self._count += 1
        self._bytes += held.size
        if self._bytes > self.max_bytes or self._count > self.max_entries:
            self._drop()

    def record_run(
        self,
        timestamp_ns: int,
        broker_id: int,
        connection_id: int,
        direction: Direction,
        peer: str,
        api_key: int,
        api_version: int,
        correlation_ids: Sequence[int],
        client_id: str | None = None,
        client_software: ClientSoftware | None = None,
        dialect: str = "kafka",
    ) -> None:
        """Append an entry without bytes for each of these correlation ids, as ``record`` does. The
        entries are made when they are read. The ids must not change afterwards."""
        if self.sink is not None or self._listeners or len(correlation_ids) < 2:
            for correlation_id in correlation_ids:
                self.record(
                    timestamp_ns, broker_id, connection_id, direction, peer, api_key, api_version,
                    correlation_id, client_id, client_software, dialect,
                )  # fmt: skip
            return
        run = _Run(
            self._sequence + 1, correlation_ids, 0, 0 if client_id is None else len(client_id),
            (timestamp_ns, broker_id, connection_id, direction, peer, api_key, api_version),
            (client_id, client_software, dialect),
        )  # fmt: skip
        self._sequence += len(run)
        self._count += len(run)
        self._entries.append(run)
        self._bytes += len(run) * run.size
        if self._bytes > self.max_bytes or self._count > self.max_entries:
            self._drop()

    @contextmanager
    def listening(self, call: Callable[[], object]) -> Iterator[None]:
        """Call the function after each new entry, on the thread that records it."""
        self._listeners = (*self._listeners, call)
        try:
            yield
        finally:
            self._listeners = tuple(each for each in self._listeners if each is not call)

    def _drop(self) -> None:
        entries = self._entries
        while self._count > 1 and (self._bytes > self.max_bytes or self._count > self.max_entries):
            oldest, count = entries[self._front], 1
            assert oldest is not None
            if isinstance(oldest, _Run):
                size = oldest.size
                surplus = self._count - self.max_entries
                if self._bytes > self.max_bytes:
                    by_bytes = -((self.max_bytes - self._bytes) // size) if size else len(oldest)
                    surplus = max(surplus, by_bytes)
                count = min(surplus, len(oldest), self._count - 1)
                oldest.place += count
                if not len(oldest):
                    self._drop_first()
            elif isinstance(oldest, _InParts):
                size = oldest.size
                self._drop_first()
            else:
                size = _size(oldest)
                self._drop_first()
            self._count -= count
            self._bytes -= count * size
            self.dropped += count
            self.dropped_bytes += count * size

    def _drop_first(self) -> None:
        entries = self._entries
        entries[self._front] = None
        self._front += 1
        if 2 * self._front > len(entries) + _EMPTY_PLACES:
            del entries[: self._front]
            self._made_end = max(0, self._made_end - self._front)
            self._front = 0

    def _made(self) -> list[Entry]:
        """The entries, each as an object of its own, behind the empty places. Costs as much as what
        was recorded since the last call."""
        entries = self._entries
        begin = max(self._made_end, self._front)
        fresh = entries[begin:]
        if not all(isinstance(each, Entry) for each in fresh):
            made: list[Entry] = []
            for each in fresh:
                if isinstance(each, Entry):
                    made.append(each)
                elif each is not None:
                    made.extend(each)
            entries[begin : begin + len(fresh)] = made
        self._made_end = len(entries)
        return cast("list[Entry]", entries)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over the entries as of now; appending meanwhile does not affect the iteration."""
        return iter(self._made()[self._front :])

    @property
    def last_sequence(self) -> int:
        """The number of the newest entry, 0 before the first; use it with ``select(after=...)``."""
        return self._sequence

    @property
    def size(self) -> int:
        """The number of bytes held, as ``max_bytes`` counts them."""
        return self._bytes

    def newer(self, after: int, most: int | None = None) -> list[Entry]:
        """Return the entries numbered above ``after``, without visiting those before: all, or the
        first ``most``."""
        made = self._made()
        count = min(max(self._sequence - after, 0), self._count)
        begin = len(made) - count
        return made[begin:] if most is None else made[begin : begin + most]

    def select(self, *, after: int = 0, **filters: Unpack[EntryFilters]) -> list[Entry]:
        """Yield the entries that pass every filter of the module's ``select``."""
        return list(select(self.newer(after), **filters))

    def clear(self) -> None:
        """Remove all entries. Numbering continues, and the removed entries do not count as
        dropped."""
        self._entries.clear()
        self._count = self._bytes = self._front = self._made_end = 0


def _size(entry: Entry) -> int:
    return len(entry.raw) + len(entry.note) + len(entry.client_id or "")


def select(
    entries: Iterable[Entry],
    *,
    broker_id: int | None = None,
    connection_id: int | None = None,
    api: int | str | None = None,
    client_software: str | None = None,
    client_id: str | None = None,
    direction: Direction | None = None,
    event: str | None = None,
    listener: str | None = None,
    after: int = 0,
) -> Iterator[Entry]:
    """Yield the entries that pass every given filter, in order.

    ``api`` is a key or any of its names (``ALTER_PARTITION_REASSIGNMENTS``,
    ``AlterPartitionReassignments``). ``client_software`` is the name alone (``kafka-python``) or
    with its version. ``after`` skips sequence numbers up to and including it.
    """
    wanted = squash(api) if isinstance(api, str) else None
    for entry in entries:
        if (
            entry.sequence > after
            and (broker_id is None or entry.broker_id == broker_id)
            and (connection_id is None or entry.connection_id == connection_id)
            and (wanted is None or squash(_api_name(entry)) == wanted)
            and (api is None or wanted is not None or entry.api_key == api)
            and (client_software is None or _is_software(entry, client_software))
            and (client_id is None or entry.client_id == client_id)
            and (direction is None or entry.direction == direction)
            and (event is None or entry.event == event)
            and (listener is None or entry.listener == listener)
        ):
            yield entry


def _is_software(entry: Entry, wanted: str) -> bool:
    software = entry.client_software
    return software is not None and wanted in (software.name, str(software))


def squash(name: str) -> str:
    """Return one form for ALTER_CONFIGS, AlterConfigs and AlterConfigsRequest."""
    return name.replace("_", "").lower().removesuffix("request").removesuffix("response")


def _api_name(entry: Entry) -> str:
    """Return ``AlterPartitionReassignments``, or a number if neither the entry's dialect (which may
    be a user's and not loaded) nor the released protocol has the key."""
    if entry.api_key is None:
        return ""
    for name in (entry.dialect, "kafka"):
        try:
            api = dialect(name).apis.get(entry.api_key)
        except KprotoError:
            continue
        if api is not None:
            return api.request.MESSAGE_NAME.removesuffix("Request")
    return f"api {entry.api_key}"


class TextSink(Protocol):
    """The only method of a text file that a writer needs."""

    def write(self, text: str, /) -> object: ...


class JournalWriter:
    """Writes entries to a text file as JSON lines. The caller opens, flushes and closes the
    file."""

    def __init__(self, file: TextSink) -> None:
        self._file = file
        self._encode = msgspec.json.Encoder().encode

    def write(self, entry: Entry) -> None:
        """Write one line in one call, so that a concurrent reader sees at most a truncated last
        line."""
        self._file.write(printable_json(self._encode(entry).decode()) + "\n")


def read_journal(
    lines: Iterable[str], *, truncated: Callable[[int], object] | None = None
) -> Iterator[Entry]:
    """Read entries from JSON lines: an open text file, or any lines with their line ends.

    An invalid last line without a line end was truncated when the writer stopped, and is skipped;
    ``truncated`` is then called with the offset of its first byte. Any other invalid line raises
    DecodeError with the line's number and that offset. Blank lines and fields of a newer format are
    ignored.
    """
    decode = msgspec.json.Decoder(Entry).decode
    offset = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                entry = decode(line)
            except (
                ValueError,
                RecursionError,
            ) as error:  # msgspec's own error, or a lone surrogate
                if not line.endswith("\n"):
                    if truncated is not None:
                        truncated(offset)
                    return
                raise DecodeError(
                    f"not a journal entry: {error}", offset=offset, path=f"line {number}"
                ) from None
            yield entry
        offset += len(line.encode(errors="replace"))


_ARROWS: Final[dict[str, str]] = {"request": "<-", "response": "->", "event": "--"}


def describe(
    entry: Entry, *, since_ns: int = 0, width: int | None = 200, using: Dialect | None = None
) -> str:
    """Return one readable line, for example::

        12.345 broker 2 <- kafka-python 3.0.12  AlterPartitionReassignments v0 #5 {"topics":[..]}

    ``<-`` is an incoming request, ``->`` an outgoing response, and ``--`` an event. Times are
    seconds from ``since_ns``. Bodies are truncated to ``width`` characters (None: not at all). The
    line contains only printable characters, whatever the peer sent.
    """
    seconds = (entry.timestamp_ns - since_ns) / 1e9
    software = entry.client_software
    who = str(software) if software is not None else entry.client_id or entry.peer or "?"
    broker = f"broker {entry.broker_id}" + (f" {entry.listener}" if entry.listener else "")
    parts = [f"{seconds:.3f} {broker} {_ARROWS[entry.direction]} {who} "]
    if entry.api_key is not None:
        parts.append(f"{_api_name(entry)} v{entry.api_version} #{entry.correlation_id}")
    if entry.event:
        parts.append(f"[{entry.event}]")
    if entry.note:
        parts.append(entry.note)
    body = _describe_body(entry, using)
    if body:
        parts.append(body if width is None or len(body) <= width else body[: width - 1] + "…")
    return printable(" ".join(parts))


def _describe_body(entry: Entry, using: Dialect | None) -> str:
    decoded = entry.decode(using)
    if decoded.error is not None:
        return f"!! {decoded.error}"
    if decoded.body is None:
        return f"{len(entry.raw)} bytes" if entry.raw else ""
    try:
        return _body_text(decoded.body, decoded.version or 0)
    except KprotoError as error:
        return f"!! {error}"


def _body_text(body: Message, version: int) -> str:
    if not (_holds_records(schema_of(type(body)).root) or _holds_metrics(body)):
        return body.to_json(version)
    return json.dumps(body_value(body, version), ensure_ascii=False, separators=(",", ":"))


def body_value(body: Message, version: int) -> dict[str, Any]:
    """Return the body as JSON values, with its record batches and pushed metrics in words instead
    of base64 (``kproto.records.summaries``, ``kproto.telemetry.summaries``). Raises KprotoError for
    values that the version cannot carry."""
    root = schema_of(type(body)).root
    value = body.to_json_value(version)
    if _holds_records(root):
        _summarize(body, value, root)
    elif _holds_metrics(body):
        from kproto.telemetry.summaries import summarize_metrics  # most journals hold no metrics

        push: Any = body
        value["metrics"] = summarize_metrics(bytes(push.metrics), push.compression_type)
    return value


def _holds_metrics(body: Message) -> bool:
    return body.MESSAGE_NAME == "PushTelemetryRequest"


def _holds_records(struct: Struct) -> bool:
    return any(
        field.type.kind == "records"
        or (field.type.inner_struct is not None and _holds_records(field.type.inner_struct))
        for field in struct.fields
    )


def _summarize(holder: Any, value: dict[str, Any], struct: Struct) -> None:
    from kproto.records.summaries import summarize_batches  # most journals hold no records

    for field in struct.fields:
        name = field.name[0].lower() + field.name[1:]
        held, inner = getattr(holder, field.python_name), field.type.inner_struct
        if not held or name not in value:
            continue
        if field.type.kind == "records":
            value[name] = summarize_batches(held)
        elif inner is not None and field.type.kind == "array":
            for each, written in zip(held, value[name], strict=True):
                _summarize(each, written, inner)
