"""Match the fields of an older release's message with those of a newer one.

Fields match by name and alias. A field without a match is taken as renamed if, at a version that
both releases have, it is at the same position with the same type. That is a guess, which is
acceptable because ``union`` compares the result with every release.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kproto.schema.model import Field, MessageSchema, Struct
from kproto.schema.versions import Versions

__all__ = ["Edition", "StructDefinition", "align", "shape"]


class Edition(msgspec.Struct, frozen=True):
    """One release's schema of the message, and the versions that the release marks unstable."""

    release: str
    schema: MessageSchema
    unstable: Versions = Versions.NONE

    def is_stable(self, version: int) -> bool:
        return version in self.schema.valid_versions and version not in self.unstable


class StructDefinition(msgspec.Struct, frozen=True):
    """One edition's definition of a struct, and the versions for which that edition is the
    authority."""

    edition: Edition
    struct: Struct
    decides: frozenset[int]


def shape(item: Field) -> str:
    """The type without struct names."""
    inner = "struct" if item.type.inner_struct is not None else str(item.type).removeprefix("[]")
    return f"[]{inner}" if item.type.kind == "array" else inner


def align(parts: Sequence[StructDefinition]) -> list[dict[int, Field]]:
    """Match the fields of all definitions. The order is that of the newest one, with removed fields
    in between."""
    slots: list[dict[int, Field]] = [{0: item} for item in parts[0].struct.fields]
    for index in range(1, len(parts)):
        place = 0
        taken: set[int] = set()
        for item in parts[index].struct.fields:
            found = _find(slots, taken, item, parts, index)
            if found is None:
                slots.insert(place, {index: item})
                taken = {each + (each >= place) for each in taken} | {place}
                place += 1
            else:
                slots[found][index] = item
                taken.add(found)
                place = found + 1
    return slots


def _find(
    slots: list[dict[int, Field]],
    taken: set[int],
    item: Field,
    parts: Sequence[StructDefinition],
    index: int,
) -> int | None:
    free = [number for number in range(len(slots)) if number not in taken]
    for number in free:
        names = {name for each in slots[number].values() for name in (each.name, *each.aliases)}
        if names & {item.name, *item.aliases}:
            return number
    old_names = {each.name for each in parts[index].struct.fields}
    for number in free:
        newer_index = min(slots[number])
        newer = slots[number][newer_index]
        if newer.name not in old_names and _same_place(
            newer, parts[newer_index], item, parts[index]
        ):
            return number
    return None


def _same_place(
    newer: Field, newer_part: StructDefinition, older: Field, older_part: StructDefinition
) -> bool:
    """Whether two fields with different names are one renamed field: at a version that both
    releases have, they are at the same position with the same type."""
    if shape(newer) != shape(older):
        return False
    both = newer_part.edition.schema.valid_versions.intersect(
        older_part.edition.schema.valid_versions
    )
    for version in both:
        if newer.is_tagged(version) and older.is_tagged(version) and newer.tag == older.tag:
            return True
        if newer.is_inline(version) and older.is_inline(version):
            new_run = [each for each in newer_part.struct.fields if each.is_inline(version)]
            old_run = [each for each in older_part.struct.fields if each.is_inline(version)]
            if new_run.index(newer) == old_run.index(older):
                return True
    return False
