"""Read JSON with Kafka's comments, and locate values in its text.

This module knows JSON, ``//`` and ``/* */`` comments, and lines, but not schemas. Parsing is the
fast path and records no positions; ``line_of`` scans the text again when an error needs a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias

from kproto.errors import SchemaError

__all__ = ["Path", "line_of", "lines", "read_json", "refuse_lone_surrogates", "strip_comments"]

Path: TypeAlias = tuple[str | int, ...]
"""Keys and array indexes from the root of the document to a value."""

_COMMENT: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STRING: Final = re.compile(r'"(?:\\.|[^"\\])*"')
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_TOKEN: Final = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:]|[^\s{}\[\],:"]+|"', re.DOTALL)
_NOT_NEWLINE: Final = re.compile(r"[^\n]")
_DEEPEST: Final = 80


class _DuplicateKey(ValueError):
    pass


def strip_comments(text: str) -> str:
    """Replace comments by blanks. Strings and the positions of all other characters stay the
    same."""
    if "//" not in text and "/*" not in text:
        return text
    return _COMMENT.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    found = match[0]
    return found if found[0] == '"' else _NOT_NEWLINE.sub(" ", found)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Kafka's own files sometimes repeat a key, which is harmless if both values are equal."""
    made = dict(pairs)
    if len(made) != len(pairs):
        for key, value in pairs:
            if made[key] != value:
                raise _DuplicateKey(key)
    return made


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def read_json(text: str, source: str) -> Any:
    """Parse one document. Raises SchemaError, with the line if the parser reports it."""
    bare = strip_comments(text)
    try:
        return json.loads(bare, object_pairs_hook=_object, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise SchemaError(
            f"not valid JSON: {error.msg.lower()} at column {error.colno}",
            source=source,
            line=error.lineno,
            remedy=_json_remedy(bare, error.pos),
        ) from None
    except _DuplicateKey as error:
        key = str(error)
        raise SchemaError(
            f"the key {key[:60]!a} is given twice in one object",
            source=source,
            line=_duplicate_line(bare),
            remedy="keep one of the two",
        ) from None
    except RecursionError:
        raise SchemaError(
            "the JSON is nested too deeply", source=source, remedy="flatten the structs"
        ) from None
    except ValueError as error:
        raise SchemaError(
            f"not valid JSON: {error}", source=source, remedy="write plain JSON numbers"
        ) from None


def refuse_lone_surrogates(text: str, source: str) -> None:
    """Raise SchemaError, with the line, if the document contains a lone surrogate. JSON permits
    them, but no class, file or message can carry them."""
    bare = strip_comments(text)
    if _SURROGATE.search(bare) is None:
        return
    for match in _STRING.finditer(bare):
        try:
            json.loads(match[0]).encode()
        except UnicodeEncodeError:
            raise SchemaError(
                "a text contains half of a surrogate pair, which is not a character",
                source=source,
                line=bare.count("\n", 0, match.start()) + 1,
                remedy="write the character itself",
            ) from None


def _json_remedy(text: str, position: int) -> str:
    before = text[:position].rstrip()
    if before.endswith(",") and text[position : position + 1] in ("}", "]"):
        return "remove the comma before it"
    if position >= len(text.rstrip()):
        return "the text ends too early; close every string, object and array"
    if text[position : position + 1] in ("}", "]"):
        return "look for one closing bracket too many"
    return "look for a missing comma, colon or quote just before it"


def _walk(text: str, visit: Callable[[Path, int, bool], bool]) -> None:
    """Call ``visit(path, line, is_repeat)`` for each value until it returns True.

    ``line`` is where the value's key (or the array element) begins. Any text is accepted and
    unexpected tokens are skipped, since this function only locates what a parser has already
    judged. Values nested more deeply than in any schema are not visited: their paths alone could
    exhaust the memory.
    """
    stack: list[tuple[Path, bool, set[str]]] = []
    counters: list[int] = []
    key: tuple[str, int] | None = None
    line, last = 1, 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        line += text.count("\n", last, match.start())
        last = match.start()
        if token in ("}", "]"):
            if stack:
                stack.pop()
                counters.pop()
            key = None
        elif token == ",":
            key = None
            if counters:
                counters[-1] += 1
        elif token == ":":
            continue
        elif stack and stack[-1][1] and key is None:
            key = (_unquote(token), line)
        else:
            if len(stack) < _DEEPEST:
                path, start, repeat = _place(stack, counters, key, line)
                if visit(path, start, repeat):
                    return
            else:
                path = stack[-1][0]
            if token in ("{", "["):
                stack.append((path, token == "{", set()))
                counters.append(0)
                key = None


def _place(
    stack: list[tuple[Path, bool, set[str]]],
    counters: list[int],
    key: tuple[str, int] | None,
    line: int,
) -> tuple[Path, int, bool]:
    if not stack:
        return (), line, False
    parent, is_object, seen = stack[-1]
    if not is_object or key is None:
        return (*parent, counters[-1]), line, False
    name, start = key
    repeat = name in seen
    seen.add(name)
    return (*parent, name), start, repeat


def _unquote(token: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        return token


def lines(text: str) -> dict[Path, int]:
    """Return the line of every value in the document, by path."""
    found: dict[Path, int] = {}

    def visit(path: Path, line: int, _repeat: bool) -> bool:
        found[path] = line
        return False

    _walk(strip_comments(text), visit)
    return found


def line_of(text: str, path: Path) -> int | None:
    """Return the line of the value at ``path``, or of its nearest enclosing value."""
    found = lines(text)
    while path not in found and path:
        path = path[:-1]
    return found.get(path)


def _duplicate_line(bare: str) -> int | None:
    found: list[int] = []

    def visit(_path: Path, line: int, repeat: bool) -> bool:
        if repeat:
            found.append(line)
        return repeat

    _walk(bare, visit)
    return found[0] if found else None
