"""Any text as a message's schema.

**Holds:** ``parse_message`` returns a schema or raises only SchemaError, whose text is one line of
at most 2000 characters, and reserves at most 2000 bytes per byte of text. ``check_text`` never
raises. A schema in which it finds no error is usable: a class can be made of it, and at its first,
its last and a middle version an empty message is encoded and decodes to an equal one.

**Accepted:** SchemaError from ``parse_message``. EncodeError for an empty message of a schema that
``check_text`` complains about, whose defaults may be null where the version allows none.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from fuzz import bounds
from fuzz.mutations import Mutate, with_words
from kproto.codec.classes import make_message_class
from kproto.errors import EncodeError, SchemaError
from kproto.schema.check import check_text
from kproto.schema.load import parse_message, schemas_directory

__all__ = ["check", "mutate", "seeds"]

A_BYTE: Final = 2000
LONGEST_ERROR: Final = 2000

_WORDS: Final = tuple(
    word.encode()
    for word in (
        '"type": "[]', '"versions": "', '"0+"', '"none"', '"3-1"', '"nullableVersions": "0+"', "{",
        "}", "[", "]", ",", '"fields": [', '"tag": 0, "taggedVersions": "0+"', '"default": "null"',
        '"default": "-1"', '"default": "0x10"', "int8", "int64", "uint16", "float64", "records",
        "bytes", "string", "uuid", '"ignorable": true', '"mapKey": true', '"flexibleVersions"',
        '"commonStructs": [', '"validVersions": "0-32767"', '"about"', "//", "/*", "*/", "\\u0000",
        '"apiKey": 1', '"type": "request"', '"type": "data"', '"type": "header"', "1e999", "NaN",
        '"latestVersionUnstable": true', '"entityType": "topicName"', '"aliases": [', "99999999999",
    )
)  # fmt: skip


def check(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")

    def parse() -> object:
        try:
            return parse_message(text, with_lines=True)
        except SchemaError as error:
            return error

    found = bounds.allocating(parse, data, a_byte=A_BYTE, besides=512 * 1024)
    if isinstance(found, SchemaError):
        assert "\n" not in str(found), str(found)
        assert len(str(found)) <= LONGEST_ERROR, len(str(found))
        return
    schema = parse_message(text)
    versions = list(schema.valid_versions)
    cls = make_message_class(schema)
    wrong = any(finding.severity == "error" for finding in check_text(text, ""))
    for version in {versions[0], versions[len(versions) // 2], versions[-1]} if versions else ():
        try:
            data_of_it = cls().encode(version)
        except EncodeError:
            assert wrong
            continue
        assert cls.decode(data_of_it, version) == cls()


def seeds() -> Iterator[bytes]:
    """Yield the shortest schemas of every folder, and one with comments."""
    for folder in sorted(schemas_directory().iterdir()):
        if folder.is_dir():
            for path in sorted(folder.glob("*.json")):
                text = path.read_bytes()
                if len(text) < 2500:
                    yield text
    yield b'// one\n{"type": "data", "name": "X", /* two */ "validVersions": "0", "fields": []}'


def mutate(data: bytes, max_size: int, rng: random.Random, plainly: Mutate) -> bytes:
    return with_words(data, _WORDS, rng)
