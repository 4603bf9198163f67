"""One side of a program: connections by name, what stands for random values, and its answers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from kproto.codec.registry import schema_of
from kproto.dialects import dialect
from kproto.errors import DecodeError
from tests.real.data.normal import Names, normal_plain
from tests.real.search.encode import encode_body

__all__ = ["CLOSED", "SILENT", "Side"]

CLOSED: Final = "closes the connection"
SILENT: Final = "does not answer"
KAFKA: Final = dialect("kafka")
INTERNAL_LISTED: Final = frozenset({35, 74})
"""APIs that list internal topics, which fill and appear by what all programs do."""

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ID: Final = re.compile(r"(?<![\w-])(?=[\w-]*[A-Z0-9_-])[\w-]{22}(?![\w-])")
_OTHERS: Final = re.compile(r"s\d{3}x\d{4}")


class _Names(Names):
    def of_text(self, value: str) -> str:
        if value and set(value) == {"A"}:
            return value
        return _ID.sub("<id>", _UUID.sub("<uuid>", super().of_text(value)))


class Side:
    """``name`` begins every name that the program gives; it has the form ``s000x0000``."""

    def __init__(self, address: tuple[str, int], name: str) -> None:
        self.name = name
        self.values: dict[str, Any] = {}
        self._address = address
        self._connections: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        self._sent = 0
        self._names = _Names()
        self._names.coordinators = {1}
        self._names.own = name

    def address_of(self, connection: str) -> tuple[str, int]:
        return self._address

    async def send(self, step: Mapping[str, Any]) -> asyncio.Task[Any]:
        """Send the step's request; the task's result is the plain answer, or CLOSED."""
        api_key, version = step["api"], step["version"]
        connection = step.get("on", "main")
        if connection not in self._connections:
            address = self.address_of(connection)
            self._connections[connection] = await asyncio.open_connection(*address)
        reader, writer = self._connections[connection]
        self._sent += 1
        writer.write(self.frame(step, self._sent))
        return asyncio.ensure_future(self._answer(reader, connection, api_key, version))

    def frame(self, step: Mapping[str, Any], number: int) -> bytes:
        """The step's request, whole; ``number`` is its correlation id."""
        api_key: int = step["api"]
        version: int = step["version"]
        api = KAFKA.api(api_key)
        kind = schema_of(api.request)
        known = version in kind.valid_versions
        flexible = version in kind.flexible_versions
        body = self._with_values(step["body"])
        content = encode_body(kind.root, body, version, kind.flexible_versions)
        header = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + number.to_bytes(4, "big")
        header += b"\x00\x06search" + (b"\x00" if flexible and known else b"")
        return (len(header) + len(content)).to_bytes(4, "big") + header + content

    async def _answer(
        self, reader: asyncio.StreamReader, connection: str, api_key: int, version: int
    ) -> Any:
        try:
            size = await reader.readexactly(4)
            frame = size + await reader.readexactly(int.from_bytes(size, "big"))
        except (asyncio.IncompleteReadError, ConnectionResetError):
            self.leave(connection)
            return CLOSED
        for each in (version, 0) if api_key == 18 else (version,):
            try:
                _, answer = KAFKA.decode_response(frame, api_key=api_key, api_version=each)
            except DecodeError as error:
                unreadable = f"unreadable: {error}"
                continue
            return json.loads(answer.to_json(each))
        return unreadable

    def keep(self, step: Mapping[str, Any], answer: Any) -> None:
        """Remember what the step keeps of its answer."""
        if not isinstance(answer, dict):
            return
        for name, path in step.get("keep", {}).items():
            value = _at(answer, path)
            self.values[name] = value
            if name.startswith("pid"):
                self._names.producer(-1 if value is None else int(value), name)
            elif isinstance(value, str) and len(value) > 20:
                self._names.text(value, name)

    def normal(self, step: Mapping[str, Any], answer: Any) -> Any:
        """The answer as it is compared."""
        if not isinstance(answer, dict):
            return answer
        if step["api"] in INTERNAL_LISTED or self._names_others(answer):
            answer = self._own(answer, step["api"])
        return normal_plain(answer, step["api"], self._names)

    def _names_others(self, answer: Any) -> bool:
        """Whether other programs are named anywhere. Most answers name none, and go on whole."""
        return any(name != self.name for name in _OTHERS.findall(json.dumps(answer)))

    def _own(self, value: Any, api_key: int) -> Any:
        """Without rows that other programs made."""
        if isinstance(value, dict):
            return {key: self._own(each, api_key) for key, each in value.items()}
        if isinstance(value, list):
            return [
                self._own(each, api_key) for each in value if not self._is_others(each, api_key)
            ]
        return value

    def _is_others(self, row: Any, api_key: int) -> bool:
        if not isinstance(row, dict):
            return False
        named = str(row.get("name", row.get("resourceName")))
        if api_key in INTERNAL_LISTED and named.startswith("__"):
            return True
        text = json.dumps(row)
        return self.name not in text and _OTHERS.search(text) is not None

    def _with_values(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._with_values(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._with_values(each) for each in value]
        if isinstance(value, str) and "$" in value:
            return self._named(value)
        return value

    def _named(self, text: str) -> Any:
        """``$name`` alone is the value of that name, of whatever type."""
        before, _, name = text.partition("$")
        kept = re.match(r"\w+", name)
        word = kept[0] if kept else ""
        if word in self.values:
            value = self.values[word]
            return value if not before and name == word else f"{before}{value}{name[len(word) :]}"
        if not before and re.fullmatch(r"e\d|gen", word):
            return 0
        if word in _UNKNOWN:
            return _UNKNOWN[word]
        return f"{before}{self.name}.{name}"

    def leave(self, connection: str) -> None:
        """Forget a connection; the next request by its name opens another one."""
        found = self._connections.pop(connection, None)
        if found is not None:
            found[1].close()

    def set_aside(self, connection: str) -> None:
        """The connection waits for an answer; others go by a new one."""
        self._connections[f"{connection} {self._sent}"] = self._connections.pop(connection)

    def close(self) -> None:
        for connection in list(self._connections):
            self.leave(connection)


_UNKNOWN: Final[Mapping[str, Any]] = {
    "tid": "DDDDDDDDDDDDDDDDDDDDDA", "pid": 999_999, "pepoch": 0, "member": "",
}  # fmt: skip
"""What stands for what no answer had."""


def _at(value: Any, path: str) -> Any:
    for part in re.findall(r"\w+", path):
        try:
            value = value[int(part)] if part.isdigit() else value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value
