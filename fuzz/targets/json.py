"""Any text as the JSON of any message, at any version.

**Holds:** ``from_json`` returns a message or raises DecodeError (including JsonError), whose path
names a place. ``to_json`` of the message parses to an equal one and is stable. A message that has
JSON has bytes, which decode to an equal message. At most 3000 bytes per byte of input are reserved.

**Accepted:** DecodeError from parsing, and UnsupportedVersionError for a value of a non-ignorable
field that the version lacks. EncodeError and UnsupportedVersionError from ``to_json`` if ``encode``
raises one too, as a version's JSON may hold what the version cannot carry. EncodeError from
``encode`` for half of a surrogate pair, which JSON can express and UTF-8 cannot.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any, Final

from fuzz import bounds, message_choice
from fuzz.mutations import Mutate, with_words
from kproto.errors import DecodeError, EncodeError, UnsupportedVersionError

__all__ = ["check", "mutate", "seeds"]

A_BYTE: Final = 3000
_WORDS: Final = (
    b"null", b"true", b"-1", b"2147483648", b"1e400", b"1.5", b"1.0", b'"NaN"', b'"Infinity"',
    b"[]", b"{}", b'""', b'"A"', b'"AAAA"', b'"AAAAAAAAAAAAAAAAAAAAAA"', b'"\\ud800"',
    b'"\\u0000"', b"[" * 1500, b"NaN", b",", b":", b'"x":1', b"\xff", b"-0", b"1E2",
    b'"\\ud83d\\ude00"', b"99999999999999999999",
)  # fmt: skip


def check(data: bytes) -> None:
    choice = message_choice.choice_of(data[: message_choice.HEAD])
    cls, version, text = choice.message, choice.version, data[message_choice.HEAD :]

    def read() -> Any:
        try:
            return cls.from_json(text, version)
        except (DecodeError, UnsupportedVersionError):
            return None

    found = bounds.allocating(read, text, a_byte=A_BYTE)
    if found is None:
        return
    try:
        document = found.to_json(version)
    except (EncodeError, UnsupportedVersionError):
        _cannot_be_written(found, version)
        return
    again = cls.from_json(document, version)
    assert repr(again) == repr(found), (again, found)
    assert again.to_json(version) == document
    try:
        body = found.encode(version)
    except EncodeError as error:
        assert "surrogate" in error.problem, error
        return
    assert repr(cls.decode(body, version)) == repr(found)


def _cannot_be_written(found: Any, version: int) -> None:
    try:
        found.encode(version)
    except (EncodeError, UnsupportedVersionError):
        return
    raise AssertionError("it has bytes but no JSON")


def seeds() -> Iterator[bytes]:
    for choice, body in message_choice.of_vectors(23):
        try:
            value = choice.message.decode(body, choice.version)
        except DecodeError:
            continue
        text = value.to_json(choice.version)
        if len(text) < 600:
            yield message_choice.head_of(choice) + text.encode()


def mutate(data: bytes, max_size: int, rng: random.Random, plainly: Mutate) -> bytes:
    """Replace a value of the document, remove or duplicate a member, or insert a word."""
    head, text = data[: message_choice.HEAD], data[message_choice.HEAD :]
    if rng.random() < 0.5:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return head + with_words(text, _WORDS, rng)
        places = list(_places(value))
        if places:
            owner, key = rng.choice(places)
            if isinstance(owner, dict) and rng.random() < 0.2:
                del owner[key]
            elif isinstance(owner, list) and rng.random() < 0.3:
                owner.append(owner[key])
            else:
                owner[key] = rng.choice(
                    (None, True, -1, 2**31, 2**63, 1.5, "", "AAAA", [], {}, "NaN")
                )
            return head + json.dumps(value).encode()
    return head + with_words(text, _WORDS, rng)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items: Any = ()
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, inner in items:
        yield value, key
        yield from _places(inner)
