"""The C engine. What a plan's description is: ``kproto.native.describe``."""

from collections.abc import Callable
from typing import Any, Final, final

INTERFACE: Final[int]
KINDS: Final[tuple[str, ...]]
COMPACT: Final[int]
NULLABLE: Final[int]
IGNORABLE: Final[int]
TAGGED: Final[int]
DEFAULT_VALUE: Final[int]
DEFAULT_LIST: Final[int]
DEFAULT_STRUCT: Final[int]

def set_up(
    no_tags: dict[int, bytes],
    uuid_type: type,
    uuid_safe: object,
    make_uuid: Callable[[bytes], object],
    struct_meta: type,
    assemble: bool,
    /,
) -> bool: ...
def methods_of(
    message: type,
    decode: Callable[..., Any],
    encode: Callable[..., Any],
    validate: Callable[..., Any],
    /,
) -> dict[str, Any]: ...

@final
class Selection:
    """What goes in and comes out: ``kproto.columns.pure``."""

    def read(
        self, bodies: tuple[Any, ...], limit: int, collect: bool, /
    ) -> tuple[int, bytes, tuple[Any, ...], list[tuple[int, bytes]], int]: ...
    def export(self, column: tuple[Any, ...], /) -> tuple[object, object]: ...

@final
class Plan:
    def __new__(
        cls,
        structs: tuple[Any, ...],
        explain_decode: Callable[[Any, int], tuple[Any, int]],
        explain_encode: Callable[[Any], bytes],
        /,
    ) -> Plan: ...
    def decode(self, data: Any, offset: int = 0, /) -> tuple[Any, int]: ...
    def encode(self, message: Any, /) -> bytes: ...
    def validate(self, data: Any, offset: int = 0, /) -> int: ...
    def takes(self, data: Any, offset: int = 0, /) -> tuple[bool, bool]: ...
    def select(self, levels: tuple[Any, ...], count: int, /) -> Selection: ...

@final
class RecordCodec:
    def __new__(cls, record_type: type, /) -> RecordCodec: ...
    def read(
        self,
        data: bytes,
        at: int,
        end: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        appended: int | None,
        /,
    ) -> list[Any] | None: ...
    def read_messages(
        self,
        data: bytes,
        at: int,
        end: int,
        magic: int,
        last_offset: int,
        crc32: Callable[[bytes], int] | None,
        appended: int | None,
        /,
    ) -> list[Any] | None: ...
    def write(
        self, records: Any, base_offset: int, base_timestamp: int, /
    ) -> tuple[bytes, int, int] | None: ...
    def sink(self, wanted: int, limit: int, /) -> RecordSink: ...

@final
class RecordSink:
    def add(
        self,
        data: bytes,
        at: int,
        end: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        appended: int | None,
        /,
    ) -> bool: ...
    def add_plain(
        self, data: bytes, unpack: Callable[[int, bytes], bytes | None] | None, /
    ) -> tuple[int, list[int]]: ...
    def put(self, records: list[Any], /) -> bool: ...
    def mark(self) -> None: ...
    def take_back(self) -> None: ...
    def finish(self) -> tuple[Any, ...]: ...
