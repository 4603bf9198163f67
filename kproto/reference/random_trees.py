"""Random trees of a message, drawn by a generator of the caller's.

Every tree survives a round trip at its version, so a field that the version lacks keeps its default
unless requested otherwise.
"""

from __future__ import annotations

import math
import random
import uuid
from typing import Any, Final

from kproto.reference.trees import default_value
from kproto.schema.model import ZERO_UUID, Field, FieldType, MessageSchema, Struct

__all__ = ["random_tree"]

_INTEGER_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_UNSIGNED_BITS: Final = {"uint16": 16, "uint32": 32}
_FLOATS: Final = (0.0, 1.0, -1.5, 0.1, 5e-324, -2.2250738585072014e-308, 1.7976931348623157e308)
_NOT_FINITE: Final = (math.inf, -math.inf)
# One to four bytes of UTF-8 each, with the ends of each range and a NUL.
_CHARACTERS: Final = (
    'abcXYZ09-_. \x00\t\n"\\\x7f'
    "\x80\xe9\u07ff\u0800\u65e5\u672c\u8a9e\ud7ff\ue000\ufffd\U00010000\U0001f600\U0010ffff"
)
_STRING_LENGTHS: Final = (0, 1, 1, 2, 3, 5, 8, 13, 21, 126, 127, 128, 129, 300)
_BLOB_LENGTHS: Final = (0, 0, 1, 4, 17, 126, 127, 128, 300)
_LONGEST_STRING: Final = 32767
_NULL_SHARE: Final = 0.1
_LONG_SHARE: Final = 0.02


def random_tree(
    schema: MessageSchema,
    version: int,
    rng: random.Random,
    *,
    richness: float = 0.6,
    size: int = 300,
    unknown_tags: bool = True,
    stray_ignorable: bool = False,
    finite: bool = True,
    nan: bool = False,
) -> dict[str, Any]:
    """A tree that is valid at ``version``.

    In each struct, at least the share ``richness`` (0.5 or more) of the version's fields differ
    from their default. Arrays have one element after about ``size`` values. ``unknown_tags`` puts
    unknown tagged fields into some structs of flexible versions. ``stray_ignorable`` also fills
    ignorable fields that the version lacks (the tree then does not survive the round trip).
    ``finite=False`` allows infinities, ``nan`` allows NaN (which equals nothing).
    """
    maker = _Maker(schema, version, rng, richness=max(0.5, richness), budget=size)
    maker.unknown_tags = unknown_tags and schema.is_flexible(version)
    maker.stray_ignorable = stray_ignorable
    maker.floats = _FLOATS + (() if finite else _NOT_FINITE) + ((math.nan,) if nan else ())
    return maker.struct(schema.root)


class _Maker:
    unknown_tags = True
    stray_ignorable = False
    floats: tuple[float, ...] = _FLOATS

    def __init__(
        self,
        schema: MessageSchema,
        version: int,
        rng: random.Random,
        *,
        richness: float,
        budget: int,
    ) -> None:
        self.schema = schema
        self.version = version
        self.rng = rng
        self.richness = richness
        self.budget = budget

    def struct(self, struct: Struct) -> dict[str, Any]:
        present = [field for field in struct.fields if self.version in field.versions]
        filled = set(map(id, self.rng.sample(present, math.ceil(len(present) * self.richness))))
        tree: dict[str, Any] = {}
        for field in struct.fields:
            if self.version not in field.versions:
                tree[field.python_name] = self.absent(field)
            elif id(field) in filled or self.rng.random() < 0.25:
                tree[field.python_name] = self.other_than_default(field)
            else:
                tree[field.python_name] = self.default(field)
        tree["unknown_tags"] = self.tags(struct)
        return tree

    def absent(self, field: Field) -> Any:
        if self.stray_ignorable and field.ignorable and self.rng.random() < 0.5:
            return self.value(field.type, nullable=False)
        return default_value(field)

    def default(self, field: Field) -> Any:
        if not self.has_default(field):
            return self.value(field.type, nullable=False)
        return default_value(field)

    def has_default(self, field: Field) -> bool:
        """Whether the default can be written at the version: it may be null, or a struct with
        fields whose default is."""
        if default_value(field) is None:
            return field.is_nullable(self.version)
        return field.type.struct is None or all(
            self.has_default(inner)
            for inner in field.type.struct.fields
            if self.version in inner.versions
        )

    def other_than_default(self, field: Field) -> Any:
        default = default_value(field)
        value: Any = None
        for _ in range(50):
            value = self.value(field.type, nullable=field.is_nullable(self.version))
            if value != default:
                break
        return value  # a struct without fields has nothing but its default

    def value(self, type_: FieldType, *, nullable: bool) -> Any:
        self.budget -= 1
        if nullable and self.rng.random() < _NULL_SHARE:
            return None
        if type_.struct is not None:
            return self.struct(type_.struct)
        if type_.element is not None:
            count = self.count(type_.element)
            return [self.value(type_.element, nullable=False) for _ in range(count)]
        return self.scalar(type_.kind)

    def count(self, element: FieldType) -> int:
        if element.struct is not None and self.is_empty(element.struct):
            return 0  # Kafka's decoder refuses what its encoder writes
        if self.budget <= 0:
            return 1
        each = 1 if element.struct is None else _least_values(element.struct, self.version)
        # Counts of 127 and more take two bytes where lengths are compact.
        if self.rng.random() < _LONG_SHARE and self.budget >= 128 * each // 2:
            return self.rng.choice((126, 127, 128, 200))
        return self.rng.choice((1, 1, 2, 3, 4)) if self.rng.random() < 0.9 else 0

    def is_empty(self, struct: Struct) -> bool:
        """Whether the struct has no bytes at the version."""
        return not self.schema.is_flexible(self.version) and all(
            field.type.struct is not None
            and not field.is_nullable(self.version)
            and self.is_empty(field.type.struct)
            for field in struct.fields
            if self.version in field.versions
        )

    def scalar(self, kind: str) -> Any:
        rng = self.rng
        if kind == "bool":
            return rng.random() < 0.5
        if kind in _INTEGER_BITS:
            half = 1 << (_INTEGER_BITS[kind] - 1)
            return self.integer(-half, half - 1)
        if kind in _UNSIGNED_BITS:
            return self.integer(0, (1 << _UNSIGNED_BITS[kind]) - 1)
        if kind == "float64":
            return rng.choice(self.floats) if rng.random() < 0.5 else rng.uniform(-1e9, 1e9)
        if kind == "uuid":
            return ZERO_UUID if rng.random() < 0.1 else uuid.UUID(int=rng.getrandbits(128))
        if kind == "string":
            return self.text()
        return self.blob()

    def integer(self, lowest: int, highest: int) -> int:
        if self.rng.random() < 0.4:
            return self.rng.choice((lowest, lowest + 1, max(lowest, -1), 0, 1, highest))
        bits = self.rng.randrange(1, highest.bit_length() + 1)
        value = self.rng.getrandbits(bits)
        return -value if lowest < 0 and self.rng.random() < 0.3 else value

    def text(self) -> str:
        if self.rng.random() < _LONG_SHARE / 10:
            return "x" * self.rng.choice((16383, 16384, _LONGEST_STRING))
        length = self.rng.choice(
            _STRING_LENGTHS[:8] if self.rng.random() < 0.8 else _STRING_LENGTHS
        )
        alphabet = "abcdefgh-0123" if self.rng.random() < 0.6 else _CHARACTERS
        return "".join(self.rng.choices(alphabet, k=length))

    def blob(self) -> bytes:
        return self.rng.randbytes(self.rng.choice(_BLOB_LENGTHS))

    def tags(self, struct: Struct) -> dict[int, bytes]:
        if not self.unknown_tags or self.rng.random() < 0.7:
            return {}
        # A tag of another version of the struct is not unknown: Kafka refuses it.
        taken = {field.tag for field in struct.fields}
        drawn = {self.rng.choice((0, 1, 2, 3, 77, 127, 128, 9999, 2**31 - 2)) for _ in range(3)}
        return {tag: self.blob() for tag in sorted(drawn) if tag not in taken}


def _least_values(struct: Struct, version: int) -> int:
    """The number of values in a struct whose arrays have one element each."""
    total = 0
    for field in struct.fields:
        if version in field.versions:
            inner = field.type.inner_struct
            total += 1 if inner is None else 1 + _least_values(inner, version)
    return total
