"""Random message schemas: valid ones of every feature, and broken ones made of them.

Names of structs and fields are words of the protocol, of Python and of our own classes, since a
draft's author knows none of them as reserved.
"""

import copy
import random
from collections.abc import Callable
from typing import Any, Final

__all__ = ["broken", "random_schema"]

_SCALARS: Final = (
    "bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid", "string",
    "bytes", "records",
)  # fmt: skip
_FIELDS: Final = (
    "TopicName", "PartitionIndex", "LeaderEpoch", "Offset", "ErrorCode", "Data", "Id", "Name",
    "Validate", "DecodeFrom", "ToJsonValue", "Encode", "Decode", "ToJson", "FromJson",
    "None", "Self", "Type", "List", "Dict", "Print", "Version", "Size", "UnknownTags",
    "IsrURL", "HTTPPort2", "Len", "Range", "Value", "Key", "Copy", "Keys", "Items", "Schema",
    "Messages", "Struct", "Read", "Write", "Index", "Count", "Result", "Buffer", "Cache",
)  # fmt: skip
_STRUCTS: Final = (
    "TopicData", "PartitionData", "BaseException", "ValueError", "Replica", "Cursor", "Endpoint",
    "Feature", "RootStruct", "Decoder", "KeyError", "DecodeError", "Plan", "Reader",
)  # fmt: skip
_ENTITIES: Final = {"string": ("topicName", "groupId", "transactionalId"), "int32": ("brokerId",),
                    "int64": ("producerId",)}  # fmt: skip
_DEFAULTS: Final[dict[str, tuple[Any, ...]]] = {
    "bool": ("true", True, "false"),
    "int8": ("-1", 7, "0x7f"), "int16": ("-1", "32767", -32768), "uint16": ("65535", 1),
    "int32": ("-1", "0x7fffffff", 5), "uint32": ("2147483647", 3),
    "int64": ("-1", "9223372036854775807", "-2"),
    "float64": ("1.5", "-0.25", 2), "string": ("none", "a b", ""), "uuid": (),
    "bytes": (), "records": (),
}  # fmt: skip


def random_schema(rng: random.Random, number: int) -> dict[str, Any]:
    """A schema that Kafka's generator takes. ``number`` makes its name unique."""
    return _Schema(rng, number).message()


class _Schema:
    def __init__(self, rng: random.Random, number: int) -> None:
        self.rng = rng
        self.number = number
        self.first = rng.choice((0, 0, 0, 1, 2))
        self.last = self.first + rng.randrange(4)
        self.flexible = rng.choice((None, None, self.first, self.first, self.last, self.last + 1))
        self.structs = rng.sample(_STRUCTS, len(_STRUCTS))
        self.common: list[dict[str, Any]] = []
        self.declares = True
        self.depth = 0

    def message(self) -> dict[str, Any]:
        rng = self.rng
        kind = rng.choice(("request", "response", "data"))
        suffix = {"request": "Request", "response": "Response", "data": ""}[kind]
        made: dict[str, Any] = {
            "type": kind,
            "name": f"Draft{self.number}{suffix}",
            "validVersions": _range(self.first, self.last),
            "flexibleVersions": "none" if self.flexible is None else f"{self.flexible}+",
        }
        if kind != "data":
            made["apiKey"] = self.number
        if kind == "request":
            made["listeners"] = ["broker"]
        everywhere = (self.first, self.last)
        self.declares = False  # Kafka's generator finds no struct that a common one declares
        for _ in range(rng.choice((0, 0, 1, 2))):
            name = self.structs.pop()
            fields = self.fields(rng.randrange(1, 4), everywhere, keyed=rng.random() < 0.2)
            self.common.append({"name": name, "versions": "0+", "fields": fields})
        self.declares = True
        made["fields"] = self.fields(rng.randrange(1, 6), everywhere)
        if self.common:
            made["commonStructs"] = self.common
        return made

    def fields(
        self, count: int, within: tuple[int, int], *, keyed: bool = False
    ) -> list[dict[str, Any]]:
        """``within`` are the versions of the struct."""
        self.depth += 1
        made = [self.field(name, within) for name in self.rng.sample(_FIELDS, count)]
        if keyed:
            plain = [
                each
                for each in made
                if each["type"] in ("int32", "string", "int64", "uuid")
                and "tag" not in each
                and "nullableVersions" not in each
            ]
            for each in plain[:2]:
                each["mapKey"] = True
        tag = 0
        for each in made:
            if "tag" in each:
                each["tag"] = tag
                tag += 1
        self.depth -= 1
        return made

    def field(self, name: str, within: tuple[int, int]) -> dict[str, Any]:
        rng = self.rng
        first, last = within
        since = rng.choice((0, 0, 0, first, rng.randint(first, last)))
        until = rng.choice((None, None, None, rng.randint(max(first, since), last)))
        made: dict[str, Any] = {"name": name, "versions": _open(since, until)}
        tagged = self.flexible is not None and self.flexible <= last and rng.random() < 0.3
        if tagged:
            until = None
            begin = max(since, self.flexible or 0)
            made["versions"] = f"{since}+"
            made["taggedVersions"] = f"{begin}+"
            made["tag"] = 0
        self.set_type(made, (max(first, since), last if until is None else until))
        self.set_nullable(made, since)
        self.set_default(made)
        if rng.random() < 0.3:
            made["ignorable"] = True
        kind = made["type"].removeprefix("[]")
        if kind in _ENTITIES and rng.random() < 0.3:
            made["entityType"] = rng.choice(_ENTITIES[kind])
        # Kafka's generator makes Java of a tagged one that does not compile.
        if made["type"] == "bytes" and "tag" not in made and rng.random() < 0.3:
            made["zeroCopy"] = True
        return made

    def set_type(self, made: dict[str, Any], within: tuple[int, int]) -> None:
        rng = self.rng
        shape = rng.random()
        if shape < 0.55 or self.depth > 3:
            made["type"] = rng.choice(_SCALARS[:-1] if "tag" in made else _SCALARS)
        elif shape < 0.7:
            # Kafka's generator makes Java of []bytes that does not compile.
            made["type"] = "[]" + rng.choice(_SCALARS[:-2])
        elif shape < 0.8 and self.common:
            made["type"] = rng.choice(("", "[]")) + rng.choice(self.common)["name"]
        elif self.structs and self.declares:
            name = self.structs.pop()
            is_array = rng.random() < 0.7
            keyed = is_array and rng.random() < 0.2
            made["type"] = "[]" * is_array + name
            made["fields"] = self.fields(rng.randrange(1, 4), within, keyed=keyed)
        else:
            made["type"] = "int32"

    def set_nullable(self, made: dict[str, Any], since: int) -> None:
        kind = made["type"]
        may = kind in ("string", "bytes", "records") or kind.startswith("[]") or "fields" in made
        if may and self.rng.random() < 0.4:
            begin = max(since, self.rng.randint(self.first, self.last))
            if "tag" in made:
                begin = int(made["taggedVersions"].removesuffix("+"))
            end = made["versions"].partition("-")[2]
            last = int(end) if end else None
            if last is None or begin <= last:
                made["nullableVersions"] = _open(begin, last)

    def set_default(self, made: dict[str, Any]) -> None:
        if made.get("nullableVersions") == made["versions"] and self.rng.random() < 0.5:
            made["default"] = "null"
        elif (choices := _DEFAULTS.get(made["type"])) and self.rng.random() < 0.4:
            made["default"] = self.rng.choice(choices)


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _open(first: int, last: int | None) -> str:
    return f"{first}+" if last is None else _range(first, last)


# -- broken ones -----------------------------------------------------------------------------------


def broken(schema: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The schema with one or two properties changed. Some of the results are valid."""
    made = copy.deepcopy(schema)
    for _ in range(rng.choice((1, 1, 2))):
        rng.choice(_CHANGES)(made, rng)
    return made


def _nodes(schema: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    waiting = [*schema.get("fields", ()), *schema.get("commonStructs", ())]
    while waiting:
        node = waiting.pop()
        if "type" in node:
            found.append(node)
        waiting += node.get("fields", ())
    return found


def _change_field(made: dict[str, Any], rng: random.Random) -> None:
    nodes = _nodes(made)
    if not nodes:
        return
    node = rng.choice(nodes)
    name, values = rng.choice(_PROPERTIES)
    node[name] = copy.deepcopy(rng.choice(values))


_VERSIONS: Final = (
    "",
    "none",
    "0",
    "0+",
    "1+",
    "3-1",
    "x",
    "0-1",
    "-1",
    "2147483648+",
    "9+",
    " 1+",
)
_PROPERTIES: Final[tuple[tuple[str, tuple[Any, ...]], ...]] = (
    ("versions", _VERSIONS),
    ("nullableVersions", _VERSIONS),
    ("taggedVersions", _VERSIONS),
    ("flexibleVersions", _VERSIONS),
    ("tag", (0, 1, 5, -1, "0")),
    ("mapKey", (True, False, "true")),
    ("type", ("int32", "records", "[]records", "[][]int8", "Struct", "boolean", "", "[]", "long")),
    (
        "default",
        ("null", "", "0", "0X10", "0x10", "-0x1", "1e3", "true", "TRUE", "99999999999", [], 1.5),
    ),
    ("entityType", ("", "unknown", "topicName", "brokerId", "producerId")),
    ("name", ("", "lower", "With Space", "É", "Name", "_x", "Two", "A1")),
    ("zeroCopy", (True, False)),
    ("ignorable", (True, "true", 1)),
    (
        "fields",
        (
            [],
            [{"name": "Z", "type": "int8", "versions": "0+"}],
            [{"name": "Z", "type": "[]Inner", "versions": "1+",
              "fields": [{"name": "Q", "type": "string", "versions": "0+"}]}],
        ),
    ),
    ("about", ("text", 5)),
    ("unknown", (1,)),
)  # fmt: skip


def _drop_property(made: dict[str, Any], rng: random.Random) -> None:
    node = rng.choice([made, *_nodes(made)])
    if node:
        del node[rng.choice(sorted(node))]


def _change_message(made: dict[str, Any], rng: random.Random) -> None:
    name, values = rng.choice(
        (
            ("validVersions", _VERSIONS), ("flexibleVersions", _VERSIONS),
            ("deprecatedVersions", _VERSIONS), ("type", ("request", "data", "metadata", "x", "",
             "coordinator-key", "coordinator-value", "header")),
            ("listeners", ([], ["broker"], ["zkBroker"], ["controller"], ["x"], "broker")),
            ("apiKey", (-1, 0, 32767, 32768, "1")), ("latestVersionUnstable", (True, "x")),
            ("name", ("lower", "", "Draft", "Drafté")),
        )
    )  # fmt: skip
    made[name] = rng.choice(values)


def _repeat_field(made: dict[str, Any], rng: random.Random) -> None:
    fields = made.get("fields")
    if fields:
        fields.append(copy.deepcopy(rng.choice(fields)))


def _nest_in_common(made: dict[str, Any], rng: random.Random) -> None:
    """Declare a struct inline in a common one."""
    inner = {"name": "Q", "type": "int8", "versions": "0+"}
    field = {"name": "P", "type": "[]Deep", "versions": "0+", "fields": [inner]}
    made.setdefault("commonStructs", []).append(
        {"name": "Shared", "versions": rng.choice(("0+", "1+")), "fields": [field]}
    )
    made.setdefault("fields", []).append({"name": "S", "type": "Shared", "versions": "0+"})


_CHANGES: Final[tuple[Callable[[dict[str, Any], random.Random], None], ...]] = (
    _change_field, _change_field, _change_field, _change_field, _change_field, _drop_property,
    _change_message, _change_message, _repeat_field, _nest_in_common,
)  # fmt: skip
