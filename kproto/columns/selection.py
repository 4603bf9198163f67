"""``select`` and its results: the interface to columns, the same for both engines.

This module chooses the engine and raises the errors. An engine only reports which bodies it did not
accept; each of these is then decoded alone, which raises the usual error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from kproto.arrow import Column, Table
from kproto.codec import registry
from kproto.codec.message import Buffer, Message
from kproto.columns.layout import ARROW_FORMATS, Field, lay_out
from kproto.columns.pure import PureSelection
from kproto.errors import BodyError, DecodeError, LimitError, SelectionError

__all__ = ["MOST_BYTES", "Columns", "Selection", "select"]

MOST_BYTES: Final = 2**31 - 1
"""The limit of int32 offsets: no buffer of a column is larger."""


class Columns(Table, frozen=True, kw_only=True, eq=False):
    """The result of ``Selection.read``: a row for each element of the deepest selected array, or
    for each body."""

    @property
    def frame(self) -> Column:
        """The body that each row came from."""
        return self.index


def select(
    message: type[Message], version: int, columns: Sequence[str] | Mapping[str, str]
) -> Selection:
    """Select fields of ``message`` at ``version`` as columns.

    ``columns`` are paths in Python or JSON names, such as ``topics.partitions.replica_nodes``,
    which are also the names of the columns; or a mapping of column names to paths. A field that the
    version lacks has its default, as in a decoded message. Fields of a null struct are null. A null
    array has no rows, like an empty one.

    Raises UnsupportedVersionError for a version that the message lacks, UnknownNameError for a
    field that it lacks, and SelectionError if the fields cannot be columns of one table: a struct
    or an array of structs itself, or fields of two arrays that are not nested in each other.
    """
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of paths: [{columns!r}]")
    if not isinstance(columns, Mapping):
        twice = [path for path in columns if columns.count(path) > 1]
        if twice:
            raise SelectionError(f"{twice[0]} was selected twice")
        columns = {path: path for path in columns}
    if "frame" in columns:
        raise SelectionError("frame is always a column: give the field another name")
    return Selection(message, version, columns)


class Selection:
    """Compiled fields of one (message, version), made by ``select``. Selections are reusable and
    thread-safe.

    ``fields`` describes the columns. ``row`` is the path of the array whose elements are the rows,
    or "" if each body is a row.
    """

    __slots__ = ("_compiled", "_decode", "_pure", "fields", "message", "row", "version")

    def __init__(self, message: type[Message], version: int, columns: Mapping[str, str]) -> None:
        layout = lay_out(registry.plan_of(message, version), columns)
        self.message = message
        self.version = version
        self.fields: tuple[Field, ...] = layout.fields
        self.row = layout.row
        self._decode = registry.decoder(message, version)
        self._pure = PureSelection(layout, self._decode)
        plan = registry.compiled_plan(message, version)
        self._compiled: registry.CompiledSelection = self._pure
        if plan is not None:
            described = tuple(level.described() for level in layout.levels)
            self._compiled = plan.select(described, len(layout.fields))

    def __repr__(self) -> str:
        names = ", ".join(field.name for field in self.fields)
        return f"<columns of {self.message.__name__} v{self.version}: {names}>"

    def read(
        self,
        bodies: Iterable[Buffer],
        *,
        errors: Literal["raise", "collect"] = "raise",
        limit: int = MOST_BYTES,
    ) -> Columns:
        """Return the rows of all ``bodies``, in order. Each body must fill its bytes, as with
        ``decode``.

        A bad body raises BodyError: the DecodeError of ``decode`` with ``index``. With
        ``errors="collect"`` the body has no rows and its error is added to ``.errors``.

        ``limit`` is the largest number of bytes (and values) in one buffer. A value repeats on each
        row below it, so bodies from an untrusted peer can require far more memory than their own
        size, up to this limit. LimitError names the body that would exceed it; read fewer bodies at
        a time.
        """
        if errors not in ("raise", "collect"):
            raise ValueError(f"errors={errors!r}: must be 'raise' or 'collect'")
        if not 4 <= limit <= MOST_BYTES:
            raise ValueError(f"limit={limit}: must be from 4 to {MOST_BYTES}")
        held = tuple(bodies)
        collect = errors == "collect"
        made = self._compiled.read(held, limit, collect)
        found = self._explain(made[3])
        if found is None:  # the engine was stricter than decode: let decode itself read the bodies
            made = self._pure.read(held, limit, collect)
            found = self._explain(made[3])
            assert found is not None
        if found and not collect:
            error = found.pop()
            try:
                raise error
            finally:
                del (
                    error
                )  # no cycle through the traceback, so that the buffers are freed with the error
        rows, frame, columns, _, full_at = made
        if full_at >= 0:
            raise LimitError(
                f"its rows would make a column larger than {limit} bytes", index=full_at
            )
        return Columns(
            rows=rows,
            index=Column(name="frame", format="i", nullable=False, length=rows, data=frame),
            columns=tuple(
                _column(field, rows, each) for field, each in zip(self.fields, columns, strict=True)
            ),
            errors=tuple(found),
            export=self._compiled.export,
        )

    def _explain(self, failed: list[tuple[int, bytes]]) -> list[BodyError] | None:
        """Return the error of each bad body, or None if decoding accepts one of them."""
        found = []
        for index, data in failed:
            try:
                _, end = self._decode(data, 0)
            except DecodeError as error:
                found.append(BodyError(error, index=index))
                continue
            if end == len(data):
                return None
            found.append(BodyError(registry.trailing_bytes(data, end), index=index))
        return found


def _column(field: Field, rows: int, made: tuple[Any, ...]) -> Column:
    nulls, validity, offsets, data, elements = made
    child = None
    if elements is not None:
        assert field.element is not None
        count, item_offsets, items = elements
        child = Column(
            name="item",
            format=ARROW_FORMATS[field.element],
            nullable=False,
            length=count,
            offsets=item_offsets,
            data=items,
        )
    return Column(
        name=field.name,
        format=field.format,
        nullable=field.nullable,
        length=rows,
        null_count=nulls,
        validity=validity,
        offsets=offsets,
        data=data,
        child=child,
    )
