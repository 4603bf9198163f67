"""The quick way. What it takes and gives: the comments over each function in C."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, final

from wiredump.connection_state import ConnectionState

INTERFACE: int

def find_request(data: bytes | bytearray, start: int, keys: bytes, /) -> int: ...

@final
class Packets:
    """Whole records of a chunk, in its order."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> tuple[int, int, int, int, int, int, int, int]: ...
    def times(self) -> tuple[bytes, bytes]: ...
    @property
    def chunk(self) -> bytes: ...

@final
class HeldRows:
    """``wiredump.tables.held_rows``."""

    def __new__(cls, codes: bytes, most_rows: int, most_size: int, /) -> HeldRows: ...
    def __len__(self) -> int: ...
    def add(self, row: tuple[Any, ...], /) -> bool: ...
    def take(self, order: tuple[int, ...], /) -> list[tuple[int, bytes | None, bytes, Any]]: ...
    number: int
    size: int

def feed_rows(
    rows: Iterator[tuple[str, Any]], held: dict[str, Any], /
) -> tuple[str, Any] | None: ...

@final
class ExchangeRows:
    """Makes rows of exchanges."""

    def __new__(
        cls, frames: HeldRows | None, requests: HeldRows | None, bodies: HeldRows | None,
        prints_all: bool, printers_of: Callable[[int, int, bool], tuple[str, str, Any, Any] | None],
        left_over: Callable[[bytes, int], str], errors_of: Callable[[tuple[int, ...]], list[str]],
        follow: Callable[..., None] | None, followed: tuple[int, ...], full: Callable[[str], None],
        gatherer: Gatherer | None, dialect: str, items: tuple[int, ...], carrying: tuple[int, ...],
        /,
    ) -> ExchangeRows: ...  # fmt: skip
    def only(
        self, api_keys: tuple[int, ...] | None, connections: tuple[int, ...] | None, since_ns: int,
        until_ns: int, /,
    ) -> None: ...  # fmt: skip

@final
class OpenRequests:
    """``wiredump.open_requests``."""

    def __new__(cls, make: Callable[..., Any], /) -> OpenRequests: ...
    @property
    def size(self) -> int: ...
    @property
    def pushed(self) -> int: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[int]: ...
    def __contains__(self, correlation_id: object, /) -> bool: ...
    def push(self, exchange: Any, /) -> None: ...
    def oldest(self, correlation_id: int, /) -> Any: ...
    def take(self, correlation_id: int, /) -> tuple[Any, bool] | None: ...
    def take_oldest(self) -> Any: ...
    def all(self) -> list[Any]: ...
    def make_all(self) -> None: ...
    @property
    def halves(self) -> frozenset[int]: ...

@final
class Reading:
    def __new__(
        cls, frame: type, exchange: type, place: type, states: tuple[type, ...], dialect: str, rows:
        ExchangeRows | None, limits: tuple[int, int, int, int], flexible: tuple[int, ...], left:
        tuple[int, ...], seed: int, share: tuple[int, int, bool], /,
    ) -> Reading: ...  # fmt: skip
    def run(self, packets: Packets, /) -> int: ...
    def restore(self, state: ConnectionState, /) -> None: ...
    def dump(self, flow: bytes, /) -> ConnectionState | None: ...
    def flows(self, with_closed: bool, /) -> list[bytes]: ...
    def counts(
        self,
    ) -> tuple[int, int, int, int, int, int, int, int, list[tuple[int, int, int]]]: ...
    def items(self) -> list[Any]: ...
    def open_with(
        self, opened: Callable[[bytes, int, int, int], tuple[Any, Any] | None], closed:
        Callable[[Any, int | None, int | None, str | None, int, int, int, int], None], software:
        Callable[[bytes], Any], decodes: Callable[[bytes], bool | None], known: Mapping[bytes, Any],
        versions: bytes, readable: bytes, /,
    ) -> None: ...  # fmt: skip
    def end(self) -> None: ...
    def __len__(self) -> int: ...

@final
class Runs:
    """Packets by their ends."""

    def __new__(cls, merged: bool, longest: int, seed: int, /) -> Runs: ...
    def __len__(self) -> int: ...
    def add(self, packets: Packets, /) -> list[int]: ...
    def take(self) -> tuple[int, tuple[bytes, ...]]: ...
    def counts(self) -> tuple[int, int]: ...

@final
class Gatherer:
    """Records of whole frames to where they are gathered."""

    def __new__(
        cls, places_of: Callable[[int, int], tuple[Any, Any, int, int] | None], text_of:
        Callable[[bytes], str], name_of: Callable[[str, int], str | None], unpack: Callable[[int,
        bytes], bytes | None], rest: Callable[..., None], otherwise: Callable[[int, int, int, int,
        int, bytes], bool], named: tuple[Any, bytearray, dict[Any, int], Callable[[], None], int],
        unnamed: tuple[Any, bytearray, dict[Any, int], Callable[[], None], int], checked:
        tuple[HeldRows | None, Callable[[bytes, int, int], int], Any, Any] | None, /,
    ) -> Gatherer: ...  # fmt: skip
    def __call__(
        self, connection: int, api_key: int, version: int, offset: int, completed_ns: int, frame:
        bytes, /,
    ) -> bool: ...  # fmt: skip

def read_run(
    run: Any, number: int, files: tuple[tuple[int, int], ...], most: int, /
) -> tuple[Packets | None, int]: ...
def carried_run(run: Any, data: bytes, /) -> Packets: ...

@final
class Spans:
    """Rows in order. Methods give a column's buffers, as Arrow has them."""

    def __len__(self) -> int: ...
    def spread(self, width: int, numbers: list[Any], /) -> bytes | None: ...
    def fixed(
        self, width: int, parts: list[tuple[bytes | None, bytes]], /
    ) -> tuple[int, bytes | None, bytes]: ...
    def blobs(
        self, parts: list[tuple[bytes | None, bytes, bytes]], /
    ) -> tuple[int, bytes | None, bytes, bytes]: ...
    def texts(
        self, places: list[Any], values: list[list[bytes | None]], /
    ) -> tuple[int, bytes | None, bytes, bytes]: ...

def order_runs(
    parts: list[tuple[Any, tuple[Any, ...], Any | None, int, int]], /
) -> Spans | None: ...
def steps() -> int: ...
def walk_pcap(
    chunk: bytes, position: int, base: int, big: bool, scale: int, limit: int, link_type: int,
    capture: int, stop: int = ..., /,
) -> tuple[Packets | None, int]: ...  # fmt: skip
def walk_pcapng(
    chunk: bytes, position: int, base: int, big: bool, interfaces: tuple[tuple[int, int, int, int],
    ...], first_interface: int, capture: int, stop: int = ..., /,
) -> tuple[Packets | None, int]: ...  # fmt: skip
