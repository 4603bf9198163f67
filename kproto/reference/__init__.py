"""An interpretive codec on ``construct`` that locates every byte.

It is slow and simple. It reads only the schema model (no plan, no generated code), which makes it
an independent implementation of the wire rules: the tests compare the fast engines with it, and
annotations of bytes come from it. It handles bodies and headers, not frames, record batches or api
keys.

**Trees.** A struct is a ``dict`` from ``python_name`` to value, in schema order, ending with
``"unknown_tags": dict[int, bytes]`` in ascending order. Arrays are ``list``, uuid is
``uuid.UUID`` (zero included), ``bytes`` and ``records`` are ``bytes``, null is None. A field that
is absent at the version, or tagged and not sent, has its default, a new object each time.

**Encoding** is what Kafka's generated classes write (KIP-482 for flexible versions). In a flexible
version lengths are unsigned varints of length + 1 (0 is null); otherwise int16 for strings, int32
for bytes, records and arrays (-1 is null). A nullable struct starts with an int8, -1 or 1; in a
tagged field it starts instead with an unsigned varint, 0 or 1, counted in the field's size.
(Observed in the class that 4.4.0 generates for ConsumerGroupMemberMetadataValue, the only message
with one: null is written as tag, 01, 00, and, since that field's default is an empty struct, the
tag is left out for the empty struct and sent for null.) A known tagged field is sent only when it
differs from its default; unknown tags are merged in, all in ascending order.

**Decode errors.** Every one is a ``DecodeError``; this table specifies them for all engines.
*F* is the first byte of the field being read, its length, count or presence prefix included; *T*
the first byte of a tag number; *S* the first byte of a tagged section, its count. "field" is the
path of that field (``topics[3].name``; elements of arrays of scalars too: ``names[2]``), "struct"
the path of the struct the section ends (empty for the message itself). ``{name}`` is the schema
name with its first letter in lower case, as Kafka prints it, and ``{name} element`` in an array
of strings. ``left`` counts the bytes from where the reading stopped to the end of the data.

======  =========================================  ======  ===========================  ==========
code    what is wrong                              offset  path                         text
======  =========================================  ======  ===========================  ==========
SHORT   a number, prefix or content is cut off     F       field                        (a)
VARCUT  a varint is cut off                        F S T   as of the line it belongs to (b)
VARBIG  a varint of over 5 bytes or over 2^32-1    F S T   as of the line it belongs to (c)
LONG    a compact length or count above 2^31-1     F       field                        (d)
NEG     a length or count below -1                 F       field                        (e)
NULL    null where the version does not allow it   F       field                        (f)
STRLEN  a string of more than 32767 bytes          F       field                        (g)
UTF8    a string that is not UTF-8                 F       field                        (h)
ALLOC   count x least element size exceeds left    F       field (the array)            (i)
MARK    presence is neither of its two values      F       field                        (j)
TAGS    count of tags x 2 exceeds left             S       struct                       (k)
TAGBIG  a tag number above 2^31-1                  T       struct                       (l)
ORDER   a tag not above the one before it          T       struct                       (m)
TAGLEN  a tagged field's size above 2^31-1         T       struct                       (d)
TAGVER  a tag the schema has at other versions     T       field                        (p)
        of the message, not at this one
TAGCUT  a tagged field's size exceeds left         T       field, or for an unknown     (a)
                                                           tag struct.unknown_tags[N]
TAGFIT  a known tagged field's size is not what    T       field                        (n)
        its value took
TRAIL   bytes after the message                    first   empty                        (o)
                                                   of them
======  =========================================  ======  ===========================  ==========

(a) ``bytes needed: {n}, left: {left}``
(b) ``unsigned varint is cut off``
(c) ``unsigned varint is longer than 5 bytes or above 4294967295``
(d) ``length {n} is above 2147483647``
(e) ``length {n} is negative, and only -1 means null``
(f) ``non-nullable field {name} was serialized as null``
(g) ``string field {name} had invalid length {n}``
(h) ``string field {name} is not valid UTF-8``
(i) ``Tried to allocate a collection of size {n}, but there are only {left} bytes remaining.``
(j) ``presence marker {n} is neither {absent} nor {present}``: -1 and 1, in a tagged field 0 and 1
(k) ``Tried to read {n} tagged fields, but there are only {left} bytes remaining.``
(l) ``tag {n} is above 2147483647``
(m) ``tag {n} comes after tag {previous}, but is not higher than it``
(n) ``tagged field {name} has size {size}, but its value took {consumed} bytes``
(o) ``bytes left over after the message: {n}``
(p) ``Tag {n} is not valid for version {v}``

Order of checks, where a field fails more than one: prefix read whole, LONG, NEG, NULL, STRLEN,
then SHORT (or ALLOC), then UTF8. A tagged field: tag read whole, TAGBIG, ORDER, size read whole,
TAGLEN, TAGVER, TAGCUT; then its value is read as if the size did not bound it (its own errors
have F at its value's first byte, after tag and size), then TAGFIT. In (a), n counts the part that
is cut off: the width of the number or prefix, or the length of the content. A prefix of a
non-flexible version is a number: SHORT, never VARCUT. The least size of an element is that of its
shortest encoding at the version, and at least 1.

What Kafka's Java accepts and this refuses, on purpose (each seen with the classes of 4.4.0): UTF8
(Java replaces), NEG (any negative length is null there), MARK (any negative byte is null there and
any other a struct), ORDER (it keeps both, or the last one of a known tag), TAGFIT (it does not
look at the size), VARBIG above 2^32-1 (cut to 32 bits there), TRAIL. What Java refuses and this
accepts: more than 1,000,000 elements or 10,000 tagged fields, which Kafka 4.4 limits and 3.9 does
not; and writing an unknown tag 2147483647, which Java reads but cannot write. A bool is true for
any byte but 0, and a varint may be longer than it needs to be, in both.

**Encode errors.** ``UnsupportedVersionError`` for a version outside the valid ones; for a field
the version lacks that is neither ignorable nor at its default (``Attempted to write a non-default
{name} at version {v}``); for unknown tags at a version that is not flexible (``Tagged fields were
set, but version {v} of this message does not support them.``). ``EncodeError`` with the path for
the rest: null where it is not allowed (``non-nullable field {name} is null``), a number out of
range, a value of another type, a string of more than 32767 bytes (``'{name}' field is too long to
be serialized``, ``'{name}Element'`` in an array), an unknown tag whose number is a known field's
at that version (``Attempted to use tag {n} as an undefined tag.``), a key that names no field.
Which of several errors in one value comes first is not part of the contract.
"""

from __future__ import annotations

import io
from typing import Any, TypeAlias

from kproto.errors import DecodeError, UnsupportedVersionError
from kproto.reference.build import construct_for
from kproto.reference.trees import complete, default_tree, default_value
from kproto.reference.walk import FieldSpan, Walk
from kproto.schema.model import MessageSchema

__all__ = [
    "FieldSpan",
    "decode",
    "default_tree",
    "default_value",
    "encode",
    "fields",
    "fields_partly",
]

Buffer: TypeAlias = bytes | bytearray | memoryview


def decode(
    schema: MessageSchema, version: int, data: Buffer, *, allow_trailing: bool = False
) -> dict[str, Any]:
    """Read one message body (or header) into a tree.

    Raises DecodeError as the table above says, UnsupportedVersionError for a version that the
    schema does not have. With ``allow_trailing`` bytes after the message are ignored.
    """
    return _parse(schema, version, data, Walk(memoryview(data).nbytes), allow_trailing)


def fields(
    schema: MessageSchema, version: int, data: Buffer, *, allow_trailing: bool = False
) -> list[FieldSpan]:
    """Where every field lies, in the order of the data; a container comes before its contents.

    The message itself has no span. Raises as ``decode`` does.
    """
    walk = Walk(memoryview(data).nbytes, keep_spans=True)
    _parse(schema, version, data, walk, allow_trailing)
    return walk.spans


def fields_partly(
    schema: MessageSchema, version: int, data: Buffer, *, size: int | None = None
) -> tuple[list[FieldSpan], DecodeError | None]:
    """As ``fields``, as far as the data goes: every span that ends before the error that ``decode``
    raises, and that error. The bytes from its offset on are in no leaf.

    Where the data is known to be the beginning of ``size`` bytes, an array that does not fit into
    it is read as far as its elements are there.
    """
    walk = Walk(memoryview(data).nbytes, keep_spans=True, size=size)
    try:
        _parse(schema, version, data, walk, allow_trailing=False)
    except DecodeError as error:
        return [span for span in walk.spans if span.offset + span.length <= error.offset], error
    return walk.spans, None


def encode(schema: MessageSchema, version: int, tree: dict[str, Any]) -> bytes:
    """Write a tree; a field that it leaves out has its default.

    Raises EncodeError or UnsupportedVersionError as documented above.
    """
    _check_version(schema, version)
    whole = complete(schema.root, tree, Walk())
    stream = io.BytesIO()
    construct_for(schema, version).build_stream(whole, stream, walk=Walk())
    return stream.getvalue()


def _parse(
    schema: MessageSchema, version: int, data: Buffer, walk: Walk, allow_trailing: bool
) -> dict[str, Any]:
    _check_version(schema, version)
    stream = io.BytesIO(data)
    tree: dict[str, Any] = construct_for(schema, version).parse_stream(stream, walk=walk)
    left = walk.left(stream)
    if left and not allow_trailing:
        raise DecodeError(f"bytes left over after the message: {left}", offset=stream.tell())
    return tree


def _check_version(schema: MessageSchema, version: int) -> None:
    if version not in schema.valid_versions:
        raise UnsupportedVersionError(
            f"{schema.name} has no version {version}; it has {schema.valid_versions}"
        )
