"""A mutation as plain data: the bytes before, each change, and the bytes after.

Changes are separate from the bytes, so that some can be left out (by the minimiser) and the same
ones can be applied to another frame of the same shape (``onto``), such as a later run's, whose
correlation id and ports differ.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from kproto.errors import KprotoError
from kproto.framing import SIZE_LENGTH

__all__ = ["CORRELATION", "Change", "Direction", "Edit", "Mutation", "MutationError", "applied"]

Direction = Literal["request", "response"]

CORRELATION: Final = "correlation-id"
"""The kind whose bytes are relative to the frame's own."""
_ID: Final = slice(SIZE_LENGTH, SIZE_LENGTH + 4)


class MutationError(KprotoError):
    """A mutation that is impossible or does not fit the frame."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Puts ``data`` in place of ``length`` bytes at ``offset``, which counts from the first byte of
    the size in the frame before any edit."""

    offset: int
    length: int
    data: bytes

    def overlaps(self, other: Edit) -> bool:
        """Two insertions at one place overlap too, as their order would be undefined."""
        mine, its = self.offset + self.length, other.offset + other.length
        if self.offset == other.offset and self.length == other.length == 0:
            return True
        return self.offset < its and other.offset < mine


@dataclass(frozen=True, slots=True)
class Change:
    """One change.

    ``path`` is that of ``kproto decode --bytes``, empty for the frame as a whole. ``size`` is the
    frame's size field; None means the true size. ``behind`` follows the frame and is not counted by
    its size.
    """

    kind: str
    path: str
    detail: str
    edits: tuple[Edit, ...] = ()
    size: int | None = None
    behind: bytes = b""

    def fits(self, others: Iterable[Change]) -> bool:
        """Return whether it can be combined with these changes."""
        for other in others:
            if self.size is not None and other.size is not None:
                return False
            if self.behind and other.behind:
                return False
            if any(mine.overlaps(its) for mine in self.edits for its in other.edits):
                return False
        return True

    def __str__(self) -> str:
        return (
            f"{self.kind} {self.path}: {self.detail}"
            if self.path
            else (f"{self.kind}: {self.detail}")
        )


@dataclass(frozen=True)
class Mutation:
    """``original`` is a valid frame of ``api_key`` at ``version``.

    If ``as_version`` is set, the same message was first written at that version, which gives
    ``base``. ``changes`` are applied to ``base``, all at once.
    """

    seed: int
    direction: Direction
    dialect: str
    api_key: int
    version: int
    original: bytes
    base: bytes
    changes: tuple[Change, ...]
    as_version: int | None = None

    @cached_property
    def frame(self) -> bytes:
        """The mutated frame, and the bytes behind it."""
        return applied(self.base, self.changes)

    @property
    def mutated(self) -> bytes:
        """The same bytes as ``frame``."""
        return self.frame

    @property
    def kind(self) -> str:
        kinds = ["version"] * (self.as_version is not None)
        return "+".join([*kinds, *(change.kind for change in self.changes)])

    @property
    def path(self) -> str:
        """The path of its first change."""
        return self.changes[0].path if self.changes else ""

    @property
    def detail(self) -> str:
        parts = [] if self.as_version is None else [f"version: written at {self.as_version}"]
        return "; ".join([*parts, *map(str, self.changes)])

    def only(self, changes: Iterable[Change]) -> Mutation:
        """Return a mutation with only these of its changes."""
        kept = tuple(changes)
        return dataclasses.replace(self, changes=kept)

    def onto(self, original: bytes, base: bytes | None = None) -> Mutation:
        """Apply the same changes to another valid frame of the same shape, already written at
        ``as_version``.

        Raises MutationError if its length differs.
        """
        base = original if base is None else base
        if len(base) != len(self.base):
            raise MutationError(
                f"a mutation of a frame of {len(self.base)} bytes does not fit one of {len(base)}"
            )
        changes = tuple(_relative(change, self.base, base) for change in self.changes)
        return dataclasses.replace(self, original=original, base=base, changes=changes)

    # ---- JSON ------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "seed": self.seed,
            "direction": self.direction,
            "dialect": self.dialect,
            "api_key": self.api_key,
            "version": self.version,
            "as_version": self.as_version,
            "kind": self.kind,
            "path": self.path,
            "detail": self.detail,
            "original": self.original.hex(),
            "base": self.base.hex() if self.base != self.original else None,
            "changes": [_change_dict(change) for change in self.changes],
            "mutated": self.frame.hex(),
        }
        return {name: value for name, value in found.items() if value is not None}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), sort_keys=True)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Mutation:
        """Parse a mutation. Raises MutationError if it is invalid or does not produce the bytes it
        states."""
        try:
            original = bytes.fromhex(document["original"])
            base = document.get("base")
            made = cls(
                seed=int(document["seed"]),
                direction=document["direction"],
                dialect=document["dialect"],
                api_key=int(document["api_key"]),
                version=int(document["version"]),
                as_version=document.get("as_version"),
                original=original,
                base=original if base is None else bytes.fromhex(base),
                changes=tuple(_change_of(each) for each in document["changes"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise MutationError(f"not a mutation: {type(error).__name__}: {error}") from None
        if made.frame.hex() != document.get("mutated", made.frame.hex()):
            raise MutationError("the changes of this mutation do not produce its bytes")
        return made

    @classmethod
    def from_json(cls, text: str) -> Mutation:
        try:
            document = json.loads(text)
        except ValueError as error:
            raise MutationError(f"not a mutation: {error}") from None
        return cls.from_dict(document)


def applied(base: bytes, changes: Iterable[Change]) -> bytes:
    """Return ``base`` after all changes, with its true size unless a change sets it.

    The changes of a mutation never overlap. Raises MutationError for an edit beyond the frame.
    """
    frame, written_size, behind = base, None, b""
    edits: list[Edit] = []
    for change in changes:
        edits += change.edits
        written_size = change.size if change.size is not None else written_size
        behind += change.behind
    for edit in sorted(edits, key=lambda each: (each.offset, each.length), reverse=True):
        if edit.offset < SIZE_LENGTH or edit.offset + edit.length > len(base):
            raise MutationError(f"an edit at {edit.offset} is outside the frame")
        frame = frame[: edit.offset] + edit.data + frame[edit.offset + edit.length :]
    size = len(frame) - SIZE_LENGTH if written_size is None else written_size
    return size.to_bytes(SIZE_LENGTH, "big", signed=True) + frame[SIZE_LENGTH:] + behind


def _relative(change: Change, before: bytes, after: bytes) -> Change:
    """Shift a correlation id by as much from the new frame's own as it was from the old one's."""
    if change.kind != CORRELATION:
        return change
    (edit,) = change.edits
    off = _signed(edit.data) - _signed(before[_ID])
    data = ((_signed(after[_ID]) + off) & 0xFFFFFFFF).to_bytes(4, "big")
    return dataclasses.replace(change, edits=(Edit(edit.offset, edit.length, data),))


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _change_dict(change: Change) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": change.kind, "path": change.path, "detail": change.detail}
    found["edits"] = [[edit.offset, edit.length, edit.data.hex()] for edit in change.edits]
    if change.size is not None:
        found["size"] = change.size
    if change.behind:
        found["behind"] = change.behind.hex()
    return found


def _change_of(document: Mapping[str, Any]) -> Change:
    edits = tuple(
        Edit(int(offset), int(length), bytes.fromhex(data))
        for offset, length, data in document["edits"]
    )
    size = document.get("size")
    return Change(
        kind=str(document["kind"]),
        path=str(document["path"]),
        detail=str(document["detail"]),
        edits=edits,
        size=None if size is None else int(size),
        behind=bytes.fromhex(document.get("behind", "")),
    )
