"""Compare the fields of two structs at given versions, and classify each difference.

Fields match by name and alias. A field without a match is taken as renamed if another field is at
the same position with the same type; the wire does not show such a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kproto.schema.align import shape
from kproto.schema.model import Field, MessageSchema, Struct

__all__ = ["Difference", "compare_messages"]


class Difference(msgspec.Struct, frozen=True):
    """``kind`` determines which of the two flags hold; see ``_EFFECTS``."""

    kind: str
    field: str
    what: str

    @property
    def breaks_at_same_version(self) -> bool:
        return _EFFECTS[self.kind][0] != ""

    @property
    def breaks_in_new_version(self) -> bool:
        return _EFFECTS[self.kind][1] != ""

    @property
    def why(self) -> str:
        return _EFFECTS[self.kind][0] or _EFFECTS[self.kind][2]

    @property
    def why_in_new_version(self) -> str:
        return _EFFECTS[self.kind][1]


_MISREAD = "a peer with the other schema misreads the bytes from here on"
_NAMES = "same place and type; names are not on the wire, so check that the meaning is the same"

_EFFECTS: dict[str, tuple[str, str, str]] = {
    # kind: (reason why it breaks at the same version, reason why it breaks as a step to a new
    # version, or else why it does not)
    "flexible": (_MISREAD + ", headers included", "", ""),
    "field-added": (_MISREAD, "", ""),
    "field-removed": (_MISREAD, "", ""),
    "field-moved": (_MISREAD, "", ""),
    "field-retyped": (_MISREAD, "one name cannot have two types in one schema", ""),
    "compact": (_MISREAD, "", ""),
    "field-tagged": (_MISREAD, "", ""),
    "field-untagged": (_MISREAD, "", ""),
    "nullable-narrowed": (
        "a null from an old peer is now refused",
        "a null value must be replaced before it can be sent",
        "",
    ),
    "nullable-widened": ("an old peer refuses the null that a new one may send", "", ""),
    "tag-changed": (
        "each peer sees the other's as an unknown tag, and the value is lost",
        "readers of both versions must look under two tags",
        "",
    ),
    "tag-reused": (
        "a peer with the other schema reads one field as the other",
        "a tag is never reused, since unknown tags are passed on between versions",
        "",
    ),
    "tagged-added": ("", "", "readers skip a tag they do not know"),
    "tagged-removed": ("", "", "it is now an unknown tag; never reuse its number"),
    "renamed": ("", "", _NAMES),
}


def compare_messages(
    old: MessageSchema, old_version: int, new: MessageSchema, new_version: int
) -> Iterator[Difference]:
    """Return every difference between ``old`` at one version and ``new`` at another."""
    was, now = old.is_flexible(old_version), new.is_flexible(new_version)
    if was != now:
        words = {True: "flexible", False: "not flexible"}
        yield Difference("flexible", "", f"was {words[was]}, is {words[now]}")
    yield from _Comparer(old, old_version, new, new_version).structs("", old.root, new.root)


class _Comparer(msgspec.Struct):
    old: MessageSchema
    old_version: int
    new: MessageSchema
    new_version: int

    def structs(self, prefix: str, old: Struct, new: Struct) -> Iterator[Difference]:
        before = [item for item in old.fields if self.old_version in item.versions]
        after = [item for item in new.fields if self.new_version in item.versions]
        pairs = self.match(before, after)
        matched_old = {id(item) for item, _ in pairs}
        matched_new = {id(item) for _, item in pairs}
        gone = [item for item in before if id(item) not in matched_old]
        come = [item for item in after if id(item) not in matched_new]
        for item in gone:
            if not item.is_tagged(self.old_version):
                yield Difference("field-removed", prefix + item.name, f"{item.type} removed")
            elif not any(other.tag == item.tag for other in self.tagged_now(after)):
                what = f"tag {item.tag} removed"
                yield Difference("tagged-removed", prefix + item.name, what)
        for item in come:
            yield self.added(prefix, item, before)
        yield from self.moved(prefix, pairs)
        for item, other in pairs:
            yield from self.fields(prefix + other.name, item, other)

    def tagged_now(self, fields: Sequence[Field]) -> list[Field]:
        return [item for item in fields if item.is_tagged(self.new_version)]

    def added(self, prefix: str, item: Field, before: Sequence[Field]) -> Difference:
        path = prefix + item.name
        if not item.is_tagged(self.new_version):
            after = f"{item.type} added"
            return Difference("field-added", path, after)
        for other in before:
            if other.is_tagged(self.old_version) and other.tag == item.tag:
                return Difference("tag-reused", path, f"tag {item.tag} was {other.name}")
        return Difference("tagged-added", path, f"tag {item.tag} added")

    def match(self, before: Sequence[Field], after: Sequence[Field]) -> list[tuple[Field, Field]]:
        pairs: list[tuple[Field, Field]] = []
        left = list(after)
        unmatched: list[Field] = []
        for item in before:
            names = {item.name, *item.aliases}
            found = next((each for each in left if names & {each.name, *each.aliases}), None)
            if found is None:
                unmatched.append(item)
            else:
                left.remove(found)
                pairs.append((item, found))
        for item in unmatched:
            places = (each for each in left if self.same_place(item, before, each, after))
            found = next(places, None)
            if found is not None:
                left.remove(found)
                pairs.append((item, found))
        return sorted(pairs, key=lambda pair: before.index(pair[0]))

    def same_place(
        self, old: Field, before: Sequence[Field], new: Field, after: Sequence[Field]
    ) -> bool:
        """Whether ``new`` can only be ``old`` under another name."""
        if shape(old) != shape(new):
            return False
        if old.is_tagged(self.old_version) or new.is_tagged(self.new_version):
            return False
        inline_before = [item for item in before if item.is_inline(self.old_version)]
        inline_after = [item for item in after if item.is_inline(self.new_version)]
        return inline_before.index(old) == inline_after.index(new)

    def moved(self, prefix: str, pairs: Sequence[tuple[Field, Field]]) -> Iterator[Difference]:
        inline = [
            pair
            for pair in pairs
            if pair[0].is_inline(self.old_version) and pair[1].is_inline(self.new_version)
        ]
        order = {id(item): place for place, item in enumerate(self.in_new_order(inline))}
        places = [order[id(new)] for _, new in inline]
        kept = _longest_rise(places)
        for place, (_, new) in zip(places, inline, strict=True):
            if place not in kept:
                earlier = [each.name for _, each in inline if order[id(each)] == place - 1]
                what = f"moved behind {earlier[0]}" if earlier else "moved to the front"
                yield Difference("field-moved", prefix + new.name, what)

    def in_new_order(self, pairs: Sequence[tuple[Field, Field]]) -> list[Field]:
        matched = {id(new) for _, new in pairs}
        return [
            item for struct in self.new.structs for item in struct.fields if id(item) in matched
        ]

    def fields(self, path: str, old: Field, new: Field) -> Iterator[Difference]:
        if old.name != new.name:
            yield Difference("renamed", path, f"was {old.name}")
        if shape(old) != shape(new):
            yield Difference("field-retyped", path, f"{old.type} became {new.type}")
            return
        yield from self.tags(path, old, new)
        was, now = old.is_nullable(self.old_version), new.is_nullable(self.new_version)
        if was and not now:
            yield Difference("nullable-narrowed", path, "no longer nullable")
        if now and not was:
            yield Difference("nullable-widened", path, "became nullable")
        yield from self.compact(path, old, new)
        if old.type.inner_struct is not None and new.type.inner_struct is not None:
            yield from self.structs(f"{path}.", old.type.inner_struct, new.type.inner_struct)

    def compact(self, path: str, old: Field, new: Field) -> Iterator[Difference]:
        """The field's own flexibility, if it overrides the message's; the message's is reported
        once."""
        was = self.old.is_flexible(self.old_version, old)
        now = self.new.is_flexible(self.new_version, new)
        message_was = self.old.is_flexible(self.old_version)
        message_now = self.new.is_flexible(self.new_version)
        if was != now and (was, now) != (message_was, message_now):
            words = {True: "compact", False: "old-style"}
            what = f"its length was {words[was]}, is {words[now]}"
            yield Difference("compact", path, what)

    def tags(self, path: str, old: Field, new: Field) -> Iterator[Difference]:
        was, now = old.is_tagged(self.old_version), new.is_tagged(self.new_version)
        if was and now and old.tag != new.tag:
            yield Difference("tag-changed", path, f"tag {old.tag} became {new.tag}")
        elif now and not was:
            yield Difference("field-tagged", path, f"became tag {new.tag}")
        elif was and not now:
            yield Difference("field-untagged", path, f"was tag {old.tag}, is inline")


def _longest_rise(places: Sequence[int]) -> set[int]:
    """Return a longest increasing subsequence: the fields that keep their order while others
    move."""
    best: list[list[int]] = []
    for place in places:
        longest: list[int] = []
        for run in best:
            if run[-1] < place and len(run) > len(longest):
                longest = run
        best.append([*longest, place])
    best.sort(key=len)
    return set(best[-1]) if best else set()
