"""Make the table ``records`` from frames, without an object for each exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from wiredump.rows.pieces import Rows

__all__ = ["RecordsOnly"]


class _Rows(Protocol):
    @property
    def carried(self) -> tuple[tuple[int, ...], tuple[int, ...], Callable[..., bool]]: ...

    def gathered(self) -> Iterable[Rows]: ...

    def counted(
        self, connection: int, requests: int, request_bytes: int, response_bytes: int
    ) -> None: ...


class RecordsOnly:
    """The sink of ``Sources.rows_to`` for frames that may have records. ``rows`` makes rows of
    them, which are passed to ``take``."""

    columns = None

    def __init__(self, take: Callable[[Iterable[Rows]], None], rows: _Rows) -> None:
        self.carried = rows.carried
        self._take = take
        self._rows = rows

    def drain(self) -> None:
        self._take(self._rows.gathered())

    def counted(
        self, connection: int, requests: int, request_bytes: int, response_bytes: int
    ) -> None:
        self._rows.counted(connection, requests, request_bytes, response_bytes)
