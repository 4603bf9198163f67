"""Read single values of a schema's JSON, and refuse invalid ones with their line.

This module knows the form of names, version ranges, flags and small integers. ``parse`` knows how a
message is composed.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from typing import Any, Final

from kproto.errors import SchemaError
from kproto.near_names import did_you_mean
from kproto.schema.jsontext import Path, line_of, lines
from kproto.schema.versions import Versions

__all__ = ["ValueReader", "good_name", "short"]

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)
_VERSIONS: Final = re.compile(r"\s*(none|\d{1,5}(\+|-\d{1,5})?)?\s*", re.ASCII)
_LONGEST_NAME: Final = 200


class ValueReader:
    """Reads one document. ``at`` arguments are paths into its JSON; ``path`` is the current field,
    for error messages."""

    def __init__(self, text: str, source: str, *, with_lines: bool) -> None:
        self.text = text
        self.source = source
        self.lines: Mapping[Path, int] = lines(text) if with_lines else {}
        self.path: list[str] = []

    # -- reporting -------------------------------------------------------------------------

    def refusal(self, problem: str, at: Path, remedy: str) -> SchemaError:
        return SchemaError(
            problem,
            source=self.source,
            line=line_of(self.text, at),
            field=".".join(self.path),
            remedy=remedy,
        )

    # -- values ----------------------------------------------------------------------------

    def object(self, value: Any, at: Path, known: frozenset[str], what: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.refusal(f"{what} must be a JSON object", at, "write { ... }")
        for key in value:
            if key not in known:
                raise self.refusal(
                    f"{what} has no property {short(key)}",
                    (*at, key),
                    did_you_mean(key, sorted(known), most=1) or "remove it",
                )
        return value

    def list(self, node: dict[str, Any], key: str, at: Path) -> list[Any]:
        value = node.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.refusal(f"{key} must be a JSON array", (*at, key), "write [ ... ]")
        return value

    def flag(self, node: dict[str, Any], key: str, at: Path) -> bool:
        value = node.get(key)
        if isinstance(value, bool):
            return value
        if value is None:
            return False
        if value in ("true", "false"):
            return bool(value == "true")
        raise self.refusal(f"{key} must be true or false", (*at, key), f'write "{key}": true')

    def text_of(self, node: dict[str, Any], key: str, at: Path) -> str:
        value = node.get(key)
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        raise self.refusal(f"{key} must be a string", (*at, key), "put it in quotes")

    def names(self, node: dict[str, Any], key: str, at: Path) -> tuple[str, ...]:
        found = self.list(node, key, at)
        for index, name in enumerate(found):
            if not isinstance(name, str) or not good_name(name):
                raise self.refusal(
                    f"{key} must hold names", (*at, key, index), "letters and digits, in quotes"
                )
        return tuple(found)

    def name(self, node: dict[str, Any], at: Path, what: str, *, capital: bool) -> str:
        name = node.get("name")
        if name is None:
            raise self.refusal(f"{what} has no name", at, 'add "name"')
        if not isinstance(name, str) or not good_name(name):
            raise self.refusal(
                f"{what} cannot be named {short(name)}",
                (*at, "name"),
                "a name is a letter followed by letters and digits",
            )
        if capital:
            self.check_struct_name(name, (*at, "name"))
        return name

    def check_struct_name(self, name: str, at: Path) -> None:
        if not good_name(name) or not name[0].isupper():
            raise self.refusal(
                f"{short(name)} cannot name a struct", at, "start it with a capital letter"
            )
        if keyword.iskeyword(name):
            raise self.refusal(f"{name} is reserved in Python", at, "choose another name")

    def versions(
        self, node: dict[str, Any], key: str, at: Path, absent: Versions | None
    ) -> Versions:
        value = node.get(key)
        if value is None:
            if absent is None:
                raise self.refusal(f"{key} is missing", at, f'add "{key}": "0+"')
            return absent
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        remedy = 'write "3", "1-4", "2+" or "none"'
        if not isinstance(value, str) or not _VERSIONS.fullmatch(value):
            raise self.refusal(f"{key} {short(value)} is not a version range", (*at, key), remedy)
        try:
            return Versions.parse(value)
        except ValueError as error:
            raise self.refusal(f"{key}: {error}", (*at, key), remedy) from None

    def small_int(self, node: dict[str, Any], key: str, at: Path, highest: int) -> int | None:
        value = node.get(key)
        if isinstance(value, str) and re.fullmatch(r"\d{1,10}", value, re.ASCII):
            value = int(value)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= highest:
            raise self.refusal(
                f"{key} {short(value)} is not an integer from 0 to {highest}",
                (*at, key),
                "write a plain number",
            )
        return value


def good_name(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None


def short(value: object) -> str:
    shown = ascii(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
