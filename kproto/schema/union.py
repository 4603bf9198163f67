"""Merge one message's schemas from several Kafka releases into the union of their versions.

For each version one release is the *authority*: the newest that has it as stable, else the newest
that has it at all. At each version, the merged schema must have its authority's layout. Field
ranges are fitted to that (an open range of the newest release is kept if it is equivalent), names
are the newest release's, and older names become aliases.

Merging may guess (which field was renamed, where a removed one was); ``verify`` then compares every
version of every release with the result and accepts only listed conflicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from kproto.errors import SchemaError
from kproto.schema.align import Edition, StructDefinition, align, shape
from kproto.schema.defaults import spell_default
from kproto.schema.layout import FieldLayout, Layout, layout, without_values
from kproto.schema.model import Field, FieldType, MessageSchema, Struct
from kproto.schema.versions import MAX_VERSION, Versions

__all__ = ["Conflict", "Edition", "MessageUnion", "ValueChange", "merge"]


class Conflict(msgspec.Struct, frozen=True):
    """A version whose layout differs between releases: ``chosen`` won over ``rejected``.

    ``unstable_in`` is the release that marks the version unstable. It is empty if the layouts
    differ only in tagged fields that ``chosen`` added, which readers of either layout skip.
    """

    version: int
    chosen: str
    rejected: str
    unstable_in: str


class ValueChange(msgspec.Struct, frozen=True):
    """A default or ``ignorable`` that differs between releases.

    The newest release wins. For ``ignorable`` it is the newest release where the flag has a
    meaning, that is, which has a valid version without the field.
    """

    field: str
    property: str
    chosen: str
    rejected: str
    chosen_value: Any
    rejected_value: Any


class MessageUnion(msgspec.Struct):
    schema: MessageSchema
    authorities: dict[int, str]
    conflicts: list[Conflict] = msgspec.field(default_factory=list)
    value_changes: list[ValueChange] = msgspec.field(default_factory=list)


def merge(editions: Sequence[Edition]) -> MessageUnion:
    """Merge, oldest edition first. Raises SchemaError if releases contradict each other."""
    return _Merger(editions).merge()


class _Merger:
    def __init__(self, editions: Sequence[Edition]) -> None:
        self.editions = list(reversed(editions))
        self.with_versions = [item for item in self.editions if item.schema.valid_versions]
        self.newest = (self.with_versions or self.editions)[0].schema
        self.authority: dict[int, Edition] = {}
        for item in reversed(self.with_versions):
            for version in item.schema.valid_versions:
                current = self.authority.get(version)
                if current is None or item.is_stable(version) or not current.is_stable(version):
                    self.authority[version] = item
        self.merged: dict[int, Struct] = {}
        self.structs: list[Struct] = []
        self.value_changes: list[ValueChange] = []

    def refuse(self, problem: str, *, path: str = "", remedy: str) -> SchemaError:
        return SchemaError(problem, source=self.newest.source, field=path, remedy=remedy)

    def merge(self) -> MessageUnion:
        versions = sorted(self.authority)
        valid = self.exact(versions, "valid versions") if versions else Versions.NONE
        self.top = valid.highest
        parts = [
            StructDefinition(item, item.schema.root, self.decided_by(item, versions))
            for item in self.with_versions
        ]
        if parts:
            root = self.struct(parts, "")
        else:
            root = self.newest.root
            self.structs = list(self.newest.structs)
        root.versions = valid
        names = [item.schema.name for item in self.editions]
        aliases = [alias for item in self.editions for alias in item.schema.aliases]
        schema = replace(
            self.newest,
            root=root,
            structs=self.structs,
            valid_versions=valid,
            flexible_versions=self.message_range(
                "flexible_versions", self.newest.flexible_versions, versions
            ),
            deprecated_versions=self.message_range(
                "deprecated_versions", self.newest.deprecated_versions, versions
            ),
            aliases=_others(self.newest.name, [*names, *aliases]),
            source="",
        )
        made = MessageUnion(
            schema,
            {version: item.release for version, item in sorted(self.authority.items())},
            value_changes=self.value_changes,
        )
        made.conflicts.extend(self.verify(schema))
        return made

    def decided_by(self, edition: Edition, versions: Iterable[int]) -> frozenset[int]:
        return frozenset(item for item in versions if self.authority[item] is edition)

    # -- ranges ----------------------------------------------------------------------------

    def exact(self, versions: Sequence[int], what: str) -> Versions:
        if not versions:
            return Versions.NONE
        lowest, highest = versions[0], versions[-1]
        if len(versions) != highest - lowest + 1:
            missing = sorted(set(range(lowest, highest)) - set(versions))
            raise self.refuse(
                f"the union of {what} has a hole at {missing[0]}",
                remedy="import the release that has that version too",
            )
        return Versions(lowest, highest)

    def fit(
        self, preferred: Versions, wanted: frozenset[int], domain: frozenset[int], what: str
    ) -> Versions:
        """Return the range that contains ``wanted`` and nothing else of ``domain``."""
        if all((version in preferred) == (version in wanted) for version in domain):
            return preferred
        if not wanted:
            return Versions.NONE
        lowest, highest = min(wanted), max(wanted)
        if any(version not in wanted for version in domain if lowest <= version <= highest):
            raise self.refuse(
                f"{what} would be {sorted(wanted)}, which is not a range",
                remedy="the releases disagree; import fewer of them",
            )
        return Versions(lowest, MAX_VERSION if highest == self.top else highest)

    def message_range(self, name: str, preferred: Versions, versions: Sequence[int]) -> Versions:
        wanted = frozenset(
            item for item in versions if item in getattr(self.authority[item].schema, name)
        )
        return self.fit(preferred, wanted, frozenset(versions), name)

    # -- structs ---------------------------------------------------------------------------

    def struct(self, parts: Sequence[StructDefinition], path: str) -> Struct:
        """Merge a struct, newest definition first. A common struct is merged once, with every
        version."""
        newest = parts[0].struct
        if (known := self.merged.get(id(newest))) is not None:
            return known
        slots = align(parts)
        struct = Struct(newest.name, newest.versions)
        self.merged[id(newest)] = struct
        for slot in slots:
            made = self.field(slot, parts, path)
            if made is not None:
                struct.fields.append(made)
        older = [name for part in parts for name in (part.struct.name, *part.struct.aliases)]
        struct.aliases = _others(struct.name, older)
        self.structs.append(struct)
        return struct

    def field(
        self, slot: dict[int, Field], parts: Sequence[StructDefinition], path: str
    ) -> Field | None:
        """Merge one field. ``slot`` maps indexes of ``parts`` to that definition's field."""
        newest = slot[min(slot)]
        where = f"{path}{newest.name}"
        domain = frozenset().union(*(part.decides for part in parts))

        def wanted(attribute: str) -> frozenset[int]:
            return frozenset(
                version
                for index, item in slot.items()
                for version in parts[index].decides
                if version in item.versions and version in getattr(item, attribute)
            )

        present = wanted("versions")
        if not present and min(slot) != 0:
            return None
        return replace(
            newest,
            default=self.value("default", slot, parts, where),
            ignorable=self.value("ignorable", slot, parts, where),
            type=self.type(slot, parts, where),
            versions=self.fit(newest.versions, present, domain, f"versions of {where}"),
            nullable_versions=self.fit(
                newest.nullable_versions, wanted("nullable_versions"), present,
                f"nullableVersions of {where}",
            ),
            tagged_versions=self.fit(
                newest.tagged_versions, wanted("tagged_versions"), present,
                f"taggedVersions of {where}",
            ),
            about="",
            line=None,
            aliases=_others(
                newest.name,
                [name for item in slot.values() for name in (item.name, *item.aliases)],
            ),
        )  # fmt: skip

    def type(
        self, slot: dict[int, Field], parts: Sequence[StructDefinition], where: str
    ) -> FieldType:
        newest = slot[min(slot)]
        for index, item in slot.items():
            if shape(item) != shape(newest) and parts[index].decides:
                raise self.refuse(
                    f"is {newest.type} in Kafka {parts[min(slot)].edition.release} but"
                    f" {item.type} in {parts[index].edition.release}",
                    path=where,
                    remedy="import fewer releases",
                )
        inner = newest.type.inner_struct
        if inner is None:
            return newest.type
        is_common = (
            sum(
                item.type.inner_struct is inner
                for struct in parts[min(slot)].edition.schema.structs
                for item in struct.fields
            )
            > 1
        )
        inner_parts = [
            StructDefinition(
                parts[index].edition,
                item.type.inner_struct,
                parts[index].decides
                if not is_common
                else self.decided_by(parts[index].edition, self.authority),
            )
            for index, item in sorted(slot.items())
            if item.type.inner_struct is not None
        ]
        if not is_common:
            inner_parts = [
                replace(part, decides=part.decides & frozenset(_within(part.decides, item)))
                for part, (_, item) in zip(inner_parts, sorted(slot.items()), strict=True)
            ]
        struct = self.struct(inner_parts, f"{where}.")
        held = FieldType("struct", struct=struct)
        return FieldType("array", element=held) if newest.type.kind == "array" else held

    def value(
        self, name: str, slot: dict[int, Field], parts: Sequence[StructDefinition], where: str
    ) -> Any:
        """Choose the value of ``default`` or ``ignorable``, and note every other value."""
        chosen = min(slot)
        if name == "ignorable":
            meant = [
                index
                for index, item in sorted(slot.items())
                if not item.versions.covers(parts[index].edition.schema.valid_versions)
            ]
            chosen = meant[0] if meant else chosen
        ours = getattr(slot[chosen], name)
        for index, item in sorted(slot.items()):
            theirs = getattr(item, name)
            if (type(ours), ours) != (type(theirs), theirs):
                spell = _spelled if name == "default" else _ignorable
                self.value_changes.append(
                    ValueChange(
                        where,
                        name,
                        parts[chosen].edition.release,
                        parts[index].edition.release,
                        spell(slot[chosen]),
                        spell(item),
                    )
                )
        return ours

    # -- proof -----------------------------------------------------------------------------

    def verify(self, schema: MessageSchema) -> Iterator[Conflict]:
        """Compare with every version of every edition; yield conflicts in versions marked
        unstable."""
        for edition in self.with_versions:
            for version in edition.schema.valid_versions:
                expected = _bytes_only(edition.schema, version)
                if _bytes_only(schema, version) == expected:
                    continue
                winner = self.authority[version]
                if winner is not edition and _adds_tags_only(
                    expected.fields, _bytes_only(winner.schema, version).fields
                ):
                    yield Conflict(version, winner.release, edition.release, "")
                    continue
                unstable = next(
                    (item for item in (edition, winner) if version in item.unstable), None
                )
                if winner is edition or unstable is None:
                    raise self.refuse(
                        f"version {version} of {edition.schema.name} has another layout in Kafka"
                        f" {edition.release} than in {winner.release}",
                        remedy="neither marks it unstable; import only one of them",
                    )
                yield Conflict(version, winner.release, edition.release, unstable.release)


def _bytes_only(schema: MessageSchema, version: int) -> Layout:
    return without_values(layout(schema, version))


def _adds_tags_only(old: Sequence[FieldLayout], new: Sequence[FieldLayout]) -> bool:
    """Whether ``new`` is ``old`` with additional tagged fields, at any level."""
    old_tags = {item.tag for item in old}
    kept = [item for item in new if item.tag is None or item.tag in old_tags]
    return len(kept) == len(old) and all(
        replace(before, members=None) == replace(after, members=None)
        and _adds_tags_only(before.members or (), after.members or ())
        for before, after in zip(old, kept, strict=True)
    )


def _within(decides: frozenset[int], item: Field) -> Iterator[int]:
    return (version for version in decides if version in item.versions)


def _spelled(item: Field) -> str:
    spelled = spell_default(item.type.kind, item.default)
    return "" if spelled is None else spelled


def _ignorable(item: Field) -> bool:
    return item.ignorable


def _others(name: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for item in names if item != name))
