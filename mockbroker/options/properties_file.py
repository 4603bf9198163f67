"""``server.properties``: Java's properties files, as ``java.util.Properties`` reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from mockbroker.errors import ClusterError

__all__ = ["Property", "parse_properties"]

_BLANKS: Final = " \t\f"
_KEY_ENDS: Final = "=: \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX: Final = re.compile(r"[0-9A-Fa-f]{4}")


class Property(NamedTuple):
    """One entry; ``line`` is the number of its first line."""

    line: int
    name: str
    value: str


def parse_properties(text: str, path: str) -> list[Property]:
    """Parse the text of a file, in its order; of an entry that is repeated, the last one counts.
    Raises ClusterError with the file's name, and the line and the key of a mistake."""
    found: dict[str, Property] = {}
    for number, line in _logical_lines(text):
        end = _key_end(line)
        rest = line[end:].lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        name = _unescaped(line[:end], f"{path}:{number}")
        found.pop(name, None)
        found[name] = Property(number, name, _unescaped(rest, f"{path}:{number}: {name}"))
    keyless = found.pop("", None)
    if keyless is not None and keyless.value:
        raise ClusterError(f"{path}:{keyless.line}: a value without a key: {keyless.value!r:.80}")
    return list(found.values())


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each entry. A line that ends in an odd number of backslashes
    continues in the next one; comments and blank lines have no entry."""
    begun, parts = 0, list[str]()
    lines = re.split(r"\r\n|\r|\n", text)
    for number, line in enumerate(lines, 1):
        stripped = line.lstrip(_BLANKS)
        if not any(parts):
            if not stripped or stripped[0] in "#!":
                continue
            begun = number
        continues = (len(stripped) - len(stripped.rstrip("\\"))) % 2
        parts.append(stripped[:-1] if continues else stripped)
        if not continues or number == len(lines):
            yield begun, "".join(parts)
            parts = []


def _key_end(line: str) -> int:
    place = 0
    while place < len(line) and line[place] not in _KEY_ENDS:
        place += 2 if line[place] == "\\" else 1
    return min(place, len(line))


def _unescaped(text: str, where: str) -> str:
    if "\\" not in text:
        return text
    found, place = [], 0
    while place < len(text):
        char = text[place]
        place += 1
        if char == "\\":
            char = text[place : place + 1]
            place += 1
            if char == "u":
                digits = text[place : place + 4]
                if not _HEX.fullmatch(digits):
                    raise ClusterError(f"{where}: \\u needs four hexadecimal digits")
                char, place = chr(int(digits, 16)), place + 4
            else:
                char = _ESCAPES.get(char, char)
        found.append(char)
    # Characters beyond the basic plane are written as two surrogates.
    return "".join(found).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
