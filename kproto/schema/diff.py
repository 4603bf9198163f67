"""Compare schemas: report which changes are compatible, which break, and why.

Two editions of a message are compared at every version that both have, where any difference in
layout breaks. The last version of the old edition is then compared with the last version of the new
one, where fields may be added and removed. Tagged fields may be added at any time (KIP-482), but a
tag must not change its meaning. Requests and responses are matched by api key, other messages by
name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import asdict

from kproto.schema.defaults import spell_default
from kproto.schema.diff_fields import Difference, compare_messages
from kproto.schema.model import Field, MessageSchema
from kproto.schema.versions import MAX_VERSION, Versions

__all__ = ["Change", "Comparison", "diff_messages", "diff_schemas"]

Verdict: TypeAlias = Literal["breaking", "compatible"]


class Change(msgspec.Struct, frozen=True):
    """One difference. ``versions`` is where it applies (``2-4``, or ``3->4`` for a step to a new
    version); it is empty if the difference concerns the whole message."""

    verdict: Verdict
    kind: str
    message: str
    versions: str
    field: str
    what: str
    why: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Comparison(msgspec.Struct):
    """``pairs`` were compared; the other messages have no counterpart."""

    changes: list[Change]
    pairs: list[tuple[str, str]]
    only_old: list[str]
    only_new: list[str]

    @property
    def breaking(self) -> bool:
        return any(item.verdict == "breaking" for item in self.changes)


def diff_schemas(
    old: Mapping[str, MessageSchema], new: Mapping[str, MessageSchema], *, partial: bool = False
) -> Comparison:
    """Compare two sets of messages, as returned by ``load_directory``.

    A message that only ``old`` contains was removed, which breaks. With ``partial``, one of the
    sets is a draft that holds only the messages it changes, so nothing was removed.
    """
    result = Comparison([], [], [], [])
    found: set[str] = set()
    for schema in old.values():
        match = _counterpart(schema, new.values())
        if match is None:
            result.only_old.append(schema.name)
            if not partial and schema.valid_versions:
                result.changes.append(_dropped_message(schema))
            continue
        found.add(match.name)
        result.pairs.append((schema.name, match.name))
        result.changes += diff_messages(schema, match)
    result.only_new = [name for name in new if name not in found]
    return result


def _dropped_message(schema: MessageSchema) -> Change:
    why = "peers that still send it get no response"
    return Change(
        "breaking", "message-dropped", schema.name, str(schema.valid_versions), "", "dropped", why
    )


def _counterpart(schema: MessageSchema, others: Iterable[MessageSchema]) -> MessageSchema | None:
    keyed = schema.type in ("request", "response")
    for other in others:
        if keyed and (other.type, other.api_key) == (schema.type, schema.api_key):
            return other
        same_kind = (other.type in ("request", "response")) == keyed
        names = {schema.name, *schema.aliases}
        if not keyed and same_kind and names & {other.name, *other.aliases}:
            return other
    return None


def diff_messages(old: MessageSchema, new: MessageSchema) -> list[Change]:
    """Compare two editions of one message. Breaking changes come first, each group in field
    order."""
    changes = [
        *_message_changes(old, new),
        *_version_changes(old, new),
        *_layout_changes(old, new),
        *_value_changes(old, new),
    ]
    return sorted(changes, key=lambda item: item.verdict != "breaking")


# -- the message as a whole ------------------------------------------------------------------


def _message_changes(old: MessageSchema, new: MessageSchema) -> Iterator[Change]:
    def change(verdict: Verdict, kind: str, what: str, why: str) -> Change:
        return Change(verdict, kind, new.name, "", "", what, why)

    if old.name != new.name:
        why = "names are not on the wire"
        if old.name not in new.aliases:
            why += f'; "aliases": ["{old.name}"] would keep code that uses the old one'
        yield change("compatible", "renamed", f"was {old.name}", why)
    if old.type != new.type:
        what = f"type {old.type} became {new.type}"
        yield change("breaking", "type", what, "peers frame it differently")
    if old.api_key != new.api_key:
        what = f"api key {old.api_key} became {new.api_key}"
        yield change("breaking", "api-key", what, "an old peer knows it under the old key")
    if old.listeners and (gone := sorted(set(old.listeners) - set(new.listeners))):
        what = f"no longer for listeners {', '.join(gone)}"
        yield change("compatible", "listeners", what, "these stop advertising it")


def _version_changes(old: MessageSchema, new: MessageSchema) -> Iterator[Change]:
    dropped = [item for item in old.valid_versions if item not in new.valid_versions]
    for run in _runs(dropped):
        deprecated = old.deprecated_versions.covers(run)
        why = "a peer that speaks only these is refused"
        if deprecated:
            why += "; they were deprecated before"
        yield Change("breaking", "versions-dropped", new.name, str(run), "", "dropped", why)
    for run in _runs([item for item in new.valid_versions if item not in old.valid_versions]):
        why = "a peer without them negotiates a lower one"
        yield Change("compatible", "versions-added", new.name, str(run), "", "added", why)


def _runs(versions: Iterable[int]) -> list[Versions]:
    runs: list[Versions] = []
    for version in sorted(versions):
        if runs and runs[-1].highest == version - 1:
            runs[-1] = Versions(runs[-1].lowest, version)
        else:
            runs.append(Versions(version, version))
    return runs


# -- layouts ---------------------------------------------------------------------------------


def _layout_changes(old: MessageSchema, new: MessageSchema) -> Iterator[Change]:
    shared = old.valid_versions.intersect(new.valid_versions)
    seen: dict[Difference, list[int]] = {}
    for version in shared:
        for difference in compare_messages(old, version, new, version):
            seen.setdefault(difference, []).append(version)
    for difference, versions in seen.items():
        for run in _runs(versions):
            yield _at_shared(old, new, difference, run)
    last_old, last_new = old.valid_versions.highest, new.valid_versions.highest
    if not old.valid_versions or not new.valid_versions or last_new <= last_old:
        return
    for difference in compare_messages(old, last_old, new, last_new):
        if difference not in seen:
            yield _in_step(new, difference, f"{last_old}->{last_new}")


def _at_shared(
    old: MessageSchema, new: MessageSchema, difference: Difference, versions: Versions
) -> Change:
    verdict: Verdict = "breaking" if difference.breaks_at_same_version else "compatible"
    why = difference.why
    unstable = old.latest_version_unstable and versions == Versions(
        old.valid_versions.highest, old.valid_versions.highest
    )
    if verdict == "breaking" and unstable:
        verdict, why = "compatible", "the old edition marked this version unstable"
    return Change(
        verdict, difference.kind, new.name, str(versions), difference.field, difference.what, why
    )


def _in_step(new: MessageSchema, difference: Difference, step: str) -> Change:
    if difference.breaks_in_new_version:
        verdict: Verdict = "breaking"
        why = difference.why_in_new_version
    else:
        verdict, why = "compatible", "older versions are as they were"
    return Change(verdict, difference.kind, new.name, step, difference.field, difference.what, why)


# -- values and ranges of whole fields -------------------------------------------------------


def _value_changes(old: MessageSchema, new: MessageSchema) -> Iterator[Change]:
    """Compare what no single version's layout shows: defaults, ``ignorable``, and ranges that
    ended."""
    valid = old.valid_versions.intersect(new.valid_versions)

    def change(
        verdict: Verdict, kind: str, path: str, what: str, why: str, versions: str = ""
    ) -> Change:
        return Change(verdict, kind, new.name, versions, path, what, why)

    for path, before, after in _same_fields(old, new):
        if before.type.kind == after.type.kind and _default(before) != _default(after):
            what = f"default {_default(before)} became {_default(after)}"
            if all(before.is_inline(item) and after.is_inline(item) for item in valid):
                why = "every version carries it; only objects made anew differ"
                yield change("compatible", "default", path, what, why)
            else:
                why = "where it is absent or omitted, it now means another value"
                yield change("breaking", "default", path, what, why)
        if before.ignorable and not after.ignorable:
            why = "writing it where the version lacks it was silent and now raises"
            for run in _runs([item for item in new.valid_versions if item not in after.versions]):
                yield change("breaking", "ignorable", path, "no longer ignorable", why, str(run))
        if after.ignorable and not before.ignorable:
            why = "a value is dropped silently where the version lacks the field"
            yield change("compatible", "ignorable", path, "became ignorable", why)
        if _ends(before.tagged_versions, after.tagged_versions):
            what = f"taggedVersions {before.tagged_versions} became {after.tagged_versions}"
            why = "a tag must stay open-ended; peers of later versions look for it"
            yield change("breaking", "tagged-versions-closed", path, what, why)


def _ends(before: Versions, after: Versions) -> bool:
    return (
        bool(before)
        and before.highest == MAX_VERSION
        and bool(after)
        and (after.highest != MAX_VERSION)
    )


def _default(item: Field) -> str:
    spelled = spell_default(item.type.kind, item.default)
    if spelled is not None:
        return spelled
    implied = {"array": "[]", "struct": "{}", "string": '""', "bytes": '""', "bool": "false"}
    return implied.get(item.type.kind, "null" if item.default is None else "0")


def _same_fields(old: MessageSchema, new: MessageSchema) -> Iterator[tuple[str, Field, Field]]:
    """Return the fields with the same path in both. Structs are followed only if both have them."""
    pending = [("", old.root, new.root)]
    seen: set[tuple[int, int]] = set()
    while pending:
        prefix, before, after = pending.pop(0)
        if (id(before), id(after)) in seen:
            continue
        seen.add((id(before), id(after)))
        for item in before.fields:
            match = next(
                (
                    other
                    for other in after.fields
                    if {item.name, *item.aliases} & {other.name, *other.aliases}
                ),
                None,
            )
            if match is None:
                continue
            yield f"{prefix}{match.name}", item, match
            inner, other_inner = item.type.inner_struct, match.type.inner_struct
            if inner is not None and other_inner is not None:
                pending.append((f"{prefix}{match.name}.", inner, other_inner))
