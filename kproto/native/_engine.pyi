"""The C engine. What a plan's description is: ``kproto.native.describe``."""

from collections.abc import Callable
from typing import Any, Final, final

import kproto.records.native

INTERFACE: Final[int]
KINDS: Final[tuple[str, ...]]
COMPACT: Final[int]
NULLABLE: Final[int]
IGNORABLE: Final[int]
TAGGED: Final[int]
PRINT_SIZE: Final[int]
PRINT_ERROR_CODE: Final[int]
PRINT_THROTTLE: Final[int]
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
    def locate(
        self, data: bytes, offset: int, header: Plan | None, /
    ) -> tuple[bytes, int] | None: ...
    def export(self, column: tuple[Any, ...], /) -> tuple[object, object]: ...

@final
class Printer:
    def print(
        self, data: bytes, offset: int, /
    ) -> tuple[str, int, tuple[int, ...], int | None] | None: ...

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
    def printer(self, structs: tuple[Any, ...], longest: int, /) -> Printer: ...

def crc32c(data: Any, start: int = 0, end: int = ..., plain: bool = False, /) -> int: ...
def requests_alike(data: bytes, at: int, rest: int, max_size: int, /) -> tuple[list[int], int]: ...
def answers_in_order(
    data: bytes, at: int, ids: list[int], place: int, max_size: int, plan: Plan | None, /
) -> tuple[int, int]: ...
def is_untagged(parts: list[bytes], plan: Plan, /) -> bool: ...
def RecordCodec(record_type: type, /) -> kproto.records.native.RecordCodec:
    """Raises ValueError where the objects of this interpreter have another layout."""
