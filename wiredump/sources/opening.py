"""Open files of any kind (``kinds``), and standard input, as items.

Captures (pcap, pcapng) are taken for one incident and merged by time; journals and request logs
follow one after the other. Any of them may be compressed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, tzinfo
from itertools import chain, count
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, cast

from kproto.dialects import Dialect
from kproto.errors import DecodeError, KprotoError
from wiredump.conversation import DEFAULT_PORTS
from wiredump.model import Anomaly, Connection, Exchange, Item, Place
from wiredump.readers import TLS_KEY_LOG, Capture, Limits, Streams, merge
from wiredump.readers.compressed import CannotInflate, LimitReached, inflater_for
from wiredump.readers.container import Walks
from wiredump.readers.share import Share
from wiredump.readers.streams import Unread
from wiredump.skipped import damage, out_of_order, read_requests, skipped_by
from wiredump.sources.captures import CaptureItems
from wiredump.sources.kinds import Kind, open_file, recognise
from wiredump.sources.packets import PacketRecorder, TakeRow
from wiredump.sources.quick import QuickStreams, Sink, in_bulk, walks
from wiredump.storage import is_uri, shown
from wiredump.tls import require_cryptography
from wiredump.tls.keylog import KeyLog, KeyLogError

if TYPE_CHECKING:
    from kproto.journal import Entry

__all__ = ["Read", "Sources", "UriError", "open_key_log", "open_sources", "require_path", "span"]

_HEAD: Final = 64 * 1024
_PAUSE: Final = 0.1
"""Seconds between two checks of a file that may grow."""


class UriError(KprotoError):
    """A URI was given instead of a path."""


class _File(NamedTuple):
    name: str
    file: BinaryIO
    kind: Kind
    number: int


class Read(NamedTuple):
    """How far a source has been read: ``bytes`` lacks those that damage lost. Times are None
    before the first packet or entry."""

    number: int
    name: str
    kind: str
    bytes: int
    first_ns: int | None
    last_ns: int | None


class Sources:
    """Iterate over the items, once; ``connections``, ``account`` and ``read`` grow meanwhile. The
    files are closed at the end of the iteration. ``close`` closes those of sources that are never
    iterated over.

    ``follow``: at the end of the file, wait for more until the iteration is closed. ``progress`` is
    called with the bytes read of all files. ``whole`` opens the same files without a ``share``.
    """

    def __init__(
        self,
        files: list[_File],
        *,
        codec: Dialect | None,
        ports: frozenset[int],
        follow: bool,
        keys: KeyLog,
        zone: tzinfo,
        rotated: bool,
        progress: Callable[[int], object] | None,
        share: Share | None = None,
        memory: int | None = None,
        max_decompressed: int | None = None,
        whole: Callable[[], Sources] | None = None,
    ) -> None:
        self.connections: dict[int, Connection] = {}
        self._files = files
        self._codec = codec
        self._ports = ports
        self._follow = follow
        self._share = share
        self._whole = whole
        self._limits = Limits.within(memory, alone=not follow)
        self._max_decompressed = max_decompressed
        self._keys = keys
        self._zone = zone
        self._secrets: dict[int, int] = {}
        self._rotated = rotated
        self._progress = progress or (lambda count: None)
        self._captures: CaptureItems | None = None
        self._streams: Streams | QuickStreams | None = None
        self._sink: Sink | None = None
        self._packets_to: TakeRow | None = None
        self._bytes = dict.fromkeys((file.number for file in files), 0)
        self._lost: dict[int, int] = {}
        self._all_bytes = 0
        self._times: dict[int, tuple[int, int]] = {}
        self._texts = _TextCounts()
        self._ended = False

    def __iter__(self) -> Iterator[Item]:
        try:
            captures = [file for file in self._files if file.kind == "capture"]
            if captures:
                yield from self._note(self._read_captures(captures))
            first = max(self.connections, default=-1) + 1
            for file in self._files:
                if file.kind != "capture":
                    known = len(self.connections)
                    yield from self._note(self._read_text(file, first))
                    first += len(self.connections) - known
            self._ended = True
        finally:
            self.close()

    def close(self) -> None:
        """Close every file, and the key log if it is followed."""
        for file in self._files:
            file.file.close()
        self._keys.close()

    @property
    def account(self) -> Mapping[str, int]:
        """Where the bytes of captures went, by name, and all else that ``skipped`` counts; empty if
        another share reports it. If the iteration was abandoned, this is what was read until then.
        After the last item, raises if the sums do not agree."""
        if self._ended and self._captures is not None and self._streams is not None:
            self._streams.account.check()
            self._captures.account.check()
        share = self._share
        if self._captures is None or self._streams is None:
            return self._texts.counts
        if share is not None and not share.reports_connections:
            return {}
        found = self._captures.account.counts
        for name, number in self._texts.counts.items():
            found[name] = found.get(name, 0) + number
        if share is None or share.is_first:
            found |= skipped_by(self._streams.account)
        if self._rotated:
            captures = [each.number for each in self._files if each.kind == "capture"]
            found |= out_of_order([self._times.get(number) for number in captures])
        return found

    @property
    def unread(self) -> Mapping[str, str]:
        """Captures without any TCP, by path, with the reason if the format shows it."""
        found = self._streams.unread if self._streams is not None else {}
        if self._rotated and len(found) < len(self._files):
            return {}
        return {file.name: found[file.number] for file in self._files if file.number in found}

    @property
    def read(self) -> list[Read]:
        """The sources, and how far they were read."""

        def read(file: _File) -> Read:
            times = self._times.get(file.number, (None, None))
            count = self._bytes[file.number] - self._lost.get(file.number, 0)
            return Read(file.number, file.name, file.kind, count, *times)

        return [read(file) for file in self._files]

    def _note(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items and note their times."""
        for item in items:
            self._saw(*span(item))
            yield item

    def _saw(self, capture: int, first: int, last: int) -> None:
        if first:
            before = self._times.get(capture)
            if before is None:
                self._times[capture] = first, last
            elif first < before[0] or last > before[1]:
                self._times[capture] = min(before[0], first), max(before[1], last)

    # -- captures ----------------------------------------------------------------------------

    def _read_captures(self, files: list[_File]) -> Iterator[Item]:
        self._captures = items = CaptureItems(
            self._codec, ports=self._ports, keys=self._keys, holds=not self._follow,
            elsewhere=self._ports_elsewhere,
        )  # fmt: skip
        self.connections = items.connections
        if self._is_quick:
            yield from self._read_quickly(files, items)
            return
        self._streams = streams = Streams(self._limits, self._share)
        if self._follow:
            events = self._followed(streams, files[0])
        else:
            captures = [self._packets(file, None) for file in files]
            add = self._packets_to
            sink = None if add is None else PacketRecorder(items.connections, add)
            events = streams.read(*([chain(*captures)] if self._rotated else captures), sink=sink)
        yield from items.read(events)

    def _ports_elsewhere(self) -> Collection[int]:
        """Return the ports of brokers on connections that belong to other shares."""
        share = self._share
        if share is None or share.divided or share.of == 1 or self._whole is None:
            return ()
        with closing(self._whole()) as sources:
            for _ in sources:
                pass
            assert sources._captures is not None
            return sources._captures.brokers()

    def _take_secrets(self, capture: Capture) -> None:
        """Use the secrets that a pcapng file has as a key log, too."""
        taken = self._secrets.get(capture.number, 0)
        self._secrets[capture.number] = len(capture.secrets)
        for secrets in capture.secrets[taken:]:
            if secrets.secrets_type == TLS_KEY_LOG:
                self._keys.add(secrets.data.decode("ascii", "replace") + "\n")

    @property
    def _is_quick(self) -> bool:
        """Whether captures are read in bulk: if they end, and no packets are needed."""
        captures = any(file.kind == "capture" for file in self._files)
        alone = self._limits.alone and self._packets_to is None
        return captures and alone and walks() is not None

    def packets_to(self, add: TakeRow) -> None:
        """Pass rows of ``packets`` to ``add``, each before the items of the next packet. Must be
        called before the iteration, on captures that end."""
        self._packets_to = add

    def rows_to(self, sink: Sink) -> None:
        """Pass to ``sink`` what it takes that needs no exchange, if these sources support it; else
        everything is an item. Must be called before the iteration."""
        if self._is_quick:
            self._sink = sink

    def _read_quickly(self, files: list[_File], items: CaptureItems) -> Iterator[Item]:
        self._streams = streams = QuickStreams(
            items, self._limits, self._codec, self._sink, self._share
        )
        if self._rotated or len(files) == 1:
            yield from streams.read(
                chain.from_iterable(self._packets(each, walks()) for each in files)
            )
        else:
            unread = Unread()
            merged = merge(*(self._packets(each, None) for each in files))
            yield from streams.read(in_bulk(unread.look_at(merged)))
            streams.unread = unread.captures
        for number, times in streams.times.items():
            self._saw(number, *times)

    def _packets(self, file: _File, walks: Walks | None) -> Iterator[Any]:
        capture = Capture(
            file.file, number=file.number, walks=walks, max_decompressed=self._max_decompressed
        )
        for packet in capture:
            self._note_progress(file, capture)
            yield packet
        self._note_progress(file, capture)

    def _note_progress(self, file: _File, capture: Capture) -> None:
        """Count the bytes read, and take the secrets that a pcapng file has."""
        if capture.bytes_read != self._bytes[file.number]:
            self._count(file.number, capture.bytes_read)
        self._lost[file.number] = capture.lost
        self._take_secrets(capture)

    def _followed(self, streams: Streams, file: _File) -> Iterator[Any]:
        capture = Capture(file.file, number=file.number, max_decompressed=self._max_decompressed)
        while not capture.stopped:
            for packet in capture.poll():
                self._note_progress(file, capture)
                yield from streams.feed(packet)
            self._note_progress(file, capture)
            try:
                time.sleep(_PAUSE)
            except KeyboardInterrupt:
                self._count_rest(streams)
                raise
        yield from streams.close()

    def _count_rest(self, streams: Streams) -> None:
        """Count what waits, after an interrupt between two packets, as if the capture ended."""
        assert self._captures is not None
        for event in streams.close():
            self._captures.feed(event)

    def _count(self, number: int, count: int) -> None:
        if count != self._bytes[number]:
            self._all_bytes += count - self._bytes[number]
            self._bytes[number] = count
            self._progress(self._all_bytes)

    # -- text --------------------------------------------------------------------------------

    def _read_text(self, file: _File, first: int) -> Iterator[Item]:
        """Read a text whose first connection has the number ``first``."""
        # Imported late, as in ``kinds``: captures alone do not need it.
        from wiredump.sources.hexadecimal import HexItems
        from wiredump.sources.journals import JournalItems
        from wiredump.sources.request_logs import RequestLogItems

        cuts: list[Anomaly] = []
        lines, known = self._lines(file, cuts), self.connections
        items: Iterable[Item]
        if file.kind == "journal":
            journal = JournalItems(capture=file.number, first=first, connections=known)
            items = journal.read(_entries(file, lines, cuts))
        elif file.kind == "request log":
            log = RequestLogItems(
                capture=file.number, first=first, zone=self._zone, connections=known
            )
            items = log.read(lines)
        else:
            frames = HexItems(self._codec, capture=file.number, number=first)
            known.update(frames.connections)
            items = frames.read(lines)
        for item in items:
            self._texts.count(item)
            yield item
        for cut in cuts[:1]:
            self._texts.damage[cut.kind] += 1
            yield cut

    def _lines(self, file: _File, cuts: list[Anomaly]) -> Iterator[str]:
        """Yield lines with their ends; the last one may lack it. What shows that the file was cut
        is added to ``cuts``."""
        line: list[bytes] = []  # the beginning of one whose end has not been read
        inflater = None
        while True:
            data = cast(Any, file.file).read1(_HEAD)
            if not data:
                if not self._follow:
                    break
                time.sleep(_PAUSE)
                continue
            if self._bytes[file.number] == 0:
                inflater = inflater_for(data[:4], self._max_decompressed)
            self._count(file.number, self._bytes[file.number] + len(data))
            try:
                for piece in inflater.feed(data) if inflater is not None else (data,):
                    whole, end, rest = piece.rpartition(b"\n")
                    if end:
                        line += whole, end
                        for each in b"".join(line).splitlines(keepends=True):
                            yield each.decode(errors="surrogateescape")
                        line.clear()
                    line.append(rest)
            except LimitReached as error:
                reason = str(error)
                cuts.append(_cut(file, "decompression-limit", reason, self._bytes[file.number]))
                break
            except CannotInflate as error:
                cuts.append(_cut(file, "damaged", str(error), self._bytes[file.number]))
                break
        if inflater is not None and inflater.unfinished and not cuts:
            reason = f"the file ends inside the {inflater.name} data"
            cuts.append(_cut(file, "truncated", reason, self._bytes[file.number]))
        if any(line):
            yield b"".join(line).decode(errors="surrogateescape")


_TEXT_DAMAGE: Final = {"damaged": "line", "cut": "cut", "unframed": "unframed"}
"""The damage that an anomaly of these kinds shows."""


class _TextCounts:
    """Counts what journals, request logs and dumps have for an account: the requests that were
    read, and ``damage`` by kind."""

    def __init__(self) -> None:
        self.damage = Counter[str]()
        self._requests = 0

    def count(self, item: Item) -> None:
        """Count one item of a file."""
        if isinstance(item, Exchange):
            request = item.request
            self._requests += request is not None and not request.sasl and item.api_key >= 0
        elif item.kind in _TEXT_DAMAGE:
            self.damage[_TEXT_DAMAGE[item.kind]] += 1

    @property
    def counts(self) -> dict[str, int]:
        return damage(self.damage) | read_requests(self._requests)


def span(item: Item) -> tuple[int, int, int]:
    """Return the source of an item, and its first and last time."""
    if isinstance(item, Anomaly):
        return item.place.capture, item.timestamp_ns, item.timestamp_ns
    request, response = item.request, item.response
    if request is None or response is None:
        frame = request or response
        assert frame is not None
        return frame.place.capture, frame.first_ns, frame.last_ns
    first, last = request.first_ns, request.last_ns
    return (
        request.place.capture,
        first if first < response.first_ns else response.first_ns,
        last if last > response.last_ns else response.last_ns,
    )


def open_sources(
    paths: Sequence[str],
    *,
    codec: Dialect | None = None,
    ports: frozenset[int] = DEFAULT_PORTS,
    follow: bool = False,
    rotated: bool = False,
    first: int = 0,
    numbers: Sequence[int] | None = None,
    share: Share | None = None,
    keylog: str | None = None,
    zone: tzinfo = UTC,
    memory: int | None = None,
    max_decompressed: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Sources:
    """Open files by path or URI; ``-`` is standard input. The sources close them at the end.

    Except with ``follow``, the result for a connection depends only on its own packets
    (``Limits.alone``). ``rotated``: the captures are the parts of one, to be read in order instead
    of being merged by time. ``first`` is the number of the first source, unless ``numbers`` has all
    of them. With a ``share``, only its connections are read from captures; with a divided one, some
    items are not its own (``Share.has_exchange``). ``keylog`` is the path of a TLS key log (NSS's
    SSLKEYLOGFILE format), which is read as it grows if the capture is followed. ``zone`` is the
    time zone of request logs that do not state one. ``memory`` limits what TCP streams keep, in
    bytes (``Limits.within``). ``max_decompressed`` limits the decompressed bytes of each compressed
    file, if not by default (``readers.compressed``).

    Raises OSError for a file that cannot be opened, and KprotoError for more than one file to
    follow and for an invalid key log.
    """
    if follow and len(paths) != 1:
        raise KprotoError("--follow reads only one file")
    if follow:
        require_path(paths[0])
    keys = open_key_log(keylog, follow=follow) if keylog is not None else KeyLog()
    files = []
    with ExitStack() as stack:
        stack.callback(keys.close)
        for number, path in zip(numbers or count(first), paths, strict=False):
            file = open_file(path)
            stack.callback(file.close)
            files.append(_File(shown(path), cast(BinaryIO, file), recognise(file, follow), number))
        stack.pop_all()
    return Sources(
        files,
        codec=codec,
        ports=ports,
        follow=follow,
        rotated=rotated,
        keys=keys,
        zone=zone,
        progress=progress,
        share=share,
        memory=memory,
        max_decompressed=max_decompressed,
        whole=lambda: open_sources(
            paths, codec=codec, ports=ports, rotated=rotated, keylog=keylog, memory=memory,
            max_decompressed=max_decompressed,
        ),
    )  # fmt: skip


def open_key_log(path: str, *, follow: bool = False) -> KeyLog:
    """Open a TLS key log. Raises OSError, KeyLogError, and MissingExtraError if no key could be
    used."""
    require_cryptography()
    with ExitStack() as stack:
        file = stack.enter_context(open_file(path))

        def more() -> str:
            return file.read().decode("ascii", "replace")

        keys = KeyLog(more if follow else None, close=file.close)
        keys.add(more(), path)
        if follow:
            stack.pop_all()
    if not follow:
        keys.end()
        if not keys:
            raise KeyLogError(f"{path} has no TLS secrets")
    return keys


def require_path(path: str) -> None:
    """Raise UriError for a URI of a file system that is not local."""
    if is_uri(path):
        raise UriError(
            f"{shown(path)} is a URI, but a path is needed here: mount the file system (an object "
            "store, HDFS)"
        )


def _cut(file: _File, kind: str, reason: str, offset: int) -> Anomaly:
    return Anomaly(kind, reason, Place(file.number, offset), 0)


def _entries(file: _File, lines: Iterable[str], cuts: list[Anomaly]) -> Iterator[Entry]:
    """Read a journal. A DecodeError names the file. A last line that is incomplete is added to
    ``cuts``."""
    from kproto.journal import read_journal

    def truncated(offset: int) -> None:
        cuts.append(_cut(file, "truncated", "the file ends inside a line", offset))

    try:
        yield from read_journal(lines, truncated=truncated)
    except DecodeError as error:
        place = f"{file.name}, {error.path}"
        raise DecodeError(error.problem, offset=error.offset, path=place) from None
