"""A count of the fields that random trees of a message fill."""

from collections.abc import Iterator
from typing import Any

from kproto.reference import default_value
from kproto.schema.model import Field, MessageSchema, Struct

__all__ = ["FieldCoverage"]


class FieldCoverage:
    """The fields of each (message, version) that had a value other than the default.

    A field's name is its path without indices: ``topics.partitions.replicas``.
    """

    def __init__(self) -> None:
        self.seen: set[tuple[str, int, str]] = set()
        self.expected: set[tuple[str, int, str]] = set()
        self.values = 0
        self.filled = 0
        """The number of values in fields of the version, and of those that are not the default."""

    def expect(self, schema: MessageSchema, version: int) -> None:
        """Expect every field that the message has at ``version``."""
        for path in _field_paths(schema.root, version):
            self.expected.add((schema.name, version, path))

    def add(self, schema: MessageSchema, version: int, tree: dict[str, Any]) -> None:
        self.expect(schema, version)
        for path, field, value in _fields_of(schema.root, version, tree):
            self.values += 1
            if value != default_value(field):
                self.filled += 1
                self.seen.add((schema.name, version, path))

    @property
    def missing(self) -> list[tuple[str, int, str]]:
        return sorted(self.expected - self.seen)

    @property
    def filled_share(self) -> float:
        """The share of all values that were not the default; 0 before any value."""
        return self.filled / self.values if self.values else 0.0

    def __str__(self) -> str:
        covered = len(self.expected & self.seen)
        share = covered / len(self.expected) if self.expected else 1.0
        return (
            f"{covered} of {len(self.expected)} fields ({share:.2%}), "
            f"{self.filled} of {self.values} values not default ({self.filled_share:.1%})"
        )


def _field_paths(struct: Struct, version: int, prefix: str = "") -> Iterator[str]:
    for field in struct.fields:
        if version not in field.versions:
            continue
        path = prefix + field.python_name
        inner = field.type.inner_struct
        below = [] if inner is None else list(_field_paths(inner, version, path + "."))
        # A struct in which nothing can be set, and which cannot be null, is always its default.
        if field.type.struct is None or below or field.is_nullable(version):
            yield path
        yield from below


def _fields_of(
    struct: Struct, version: int, tree: dict[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Field, Any]]:
    for field in struct.fields:
        if version not in field.versions:
            continue
        path, value = prefix + field.python_name, tree[field.python_name]
        yield path, field, value
        inner = field.type.inner_struct
        # A struct at its default is one value: nothing in it was chosen, nor sent if tagged.
        if inner is not None and value is not None and value != default_value(field):
            for item in value if isinstance(value, list) else [value]:
                yield from _fields_of(inner, version, item, path + ".")
