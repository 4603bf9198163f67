"""The types of options: how flags, numbers, durations, sizes and mappings are written as text and
as JSON. The functions raise ClusterError."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from kproto.durations import DurationError, parse_duration
from mockbroker.errors import ClusterError
from mockbroker.simulation.state.option_declarations import OptionType

__all__ = [
    "CONFIGS",
    "CONFIGS_BY_BROKER",
    "DELAY",
    "FEATURES",
    "FIXES",
    "FLAG",
    "MAX_INTEGER",
    "SIZE",
    "by_broker",
    "choice",
    "choice_or_broker",
    "duration_or_off",
    "feature_level",
    "flag_of",
    "integer",
    "integer_of",
    "interval",
    "name_and_value",
    "nullable",
    "object_of",
    "parse_milliseconds",
    "parse_size",
    "switch",
    "switched_fix",
    "text",
    "text_of",
    "texts",
    "texts_of",
]

T = TypeVar("T")

MAX_INTEGER: Final = 10**12 - 1
"""The largest number in a JSON body: no id is larger, and no test skips more milliseconds."""
_MOST_TEXTS: Final = 10_000
_LONGEST_MS: Final = 10**9
_SIZES: Final = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

# ---- JSON ----------------------------------------------------------------------------------------


def integer_of(name: str, value: Any) -> int:
    """A JSON integer."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ClusterError(f'"{name}" must be an integer, not {value!r:.80}')
    if abs(value) > MAX_INTEGER:
        raise ClusterError(f'"{name}" is too large; the maximum is {MAX_INTEGER}')
    return value


def text_of(name: str, value: Any) -> str:
    """A JSON string."""
    if not isinstance(value, str):
        raise ClusterError(f'"{name}" must be a string, not {value!r:.80}')
    return value


def flag_of(name: str, value: Any) -> bool:
    """A JSON boolean."""
    if not isinstance(value, bool):
        raise ClusterError(f'"{name}" must be true or false, not {value!r:.80}')
    return value


def texts_of(name: str, value: Any) -> list[str]:
    """A JSON array of strings."""
    if not isinstance(value, list) or len(value) > _MOST_TEXTS:
        raise ClusterError(f'"{name}" must be a list of strings, not {value!r:.80}')
    return [text_of(name, each) for each in value]


def object_of(name: str, value: Any, read: Callable[[str, Any], T]) -> dict[str, T]:
    """A JSON object whose values ``read`` reads."""
    if not isinstance(value, dict):
        raise ClusterError(f'"{name}" must be an object, not {value!r:.80}')
    return {key: read(f"{name}.{key}", each) for key, each in value.items()}


def by_broker(name: str, value: Any, read: Callable[[str, Any], T]) -> dict[int, T]:
    """A JSON object with a member for each broker."""
    found = object_of(name, value, read)
    for key in found:
        if not (key.isascii() and key.isdigit() and len(key) < 10):
            raise ClusterError(f'"{name}" has the member {key!r:.80}, which is not a broker id')
    return {int(key): each for key, each in found.items()}


def _configs_of(name: str, value: Any) -> dict[str, str]:
    return object_of(name, value, text_of)


# ---- text ----------------------------------------------------------------------------------------


def parse_milliseconds(text: str) -> int:
    """Parse ``500ms``, ``1.5s``, ``2m``, ``1h`` or ``0``."""
    try:
        milliseconds, rest = divmod(parse_duration(text), 10**6)
    except DurationError as error:
        raise ClusterError(str(error)) from None
    if rest:
        raise ClusterError(f"{text!r} is not a whole number of milliseconds")
    return milliseconds


def duration_or_off(text: str) -> int | None:
    """Milliseconds, at least one; None for ``off``."""
    if text == "off":
        return None
    milliseconds = parse_milliseconds(text)
    if milliseconds < 1:
        raise ClusterError("must be at least 1ms; use off to disable it")
    return milliseconds


def _duration_text(milliseconds: int | None) -> str:
    if not milliseconds:
        return "off"
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{milliseconds}ms" if rest else f"{minutes}m"


def parse_size(text: str) -> int:
    """Read bytes: ``1048576``, ``64MiB``."""
    found = re.fullmatch(r"([0-9]{1,15})(|KiB|MiB|GiB)", text)
    if found is None or not int(found[1]):
        raise ClusterError(f"{text!r} is not a size; use bytes, or a unit as in 64MiB or 1GiB")
    return int(found[1]) * _SIZES[found[2]]


def _size_text(size: int) -> str:
    unit = max((unit for unit in _SIZES if size % _SIZES[unit] == 0), key=_SIZES.__getitem__)
    return f"{size // _SIZES[unit]}{unit}"


def name_and_value(text: str, example: str) -> tuple[str, str]:
    """Split ``NAME=VALUE``; the error shows the example."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ClusterError(f"{text!r}: use NAME=VALUE, such as {example}")
    return name, value


def switched_fix(text: str) -> tuple[str, bool]:
    """Split ``KAFKA-NUMBER=on`` or ``=off``."""
    issue, state = name_and_value(text, "KAFKA-19233=off")
    if state not in ("on", "off"):
        raise ClusterError(f"{text!r}: use KAFKA-NUMBER=on or =off, such as KAFKA-19233=off")
    return issue, state == "on"


def feature_level(text: str) -> tuple[str, int]:
    """Split ``NAME=LEVEL``."""
    name, level = name_and_value(text, "transaction.version=1")
    if not (level.isascii() and level.isdigit()) or int(level) > 32767:
        raise ClusterError(f"{text!r}: use NAME=LEVEL, such as transaction.version=1")
    return name, int(level)


# ---- types ---------------------------------------------------------------------------------------

FLAG: Final = OptionType({"type": "boolean"}, flag_of)


def switch(*words: str, on: str) -> OptionType:
    """A boolean that is one of two words on a command line."""
    (off,) = (each for each in words if each != on)
    return OptionType(
        {"type": "boolean"},
        flag_of,
        from_text=lambda word: word == on,
        to_text=lambda value: "" if value is None else on if value else off,
        words=words,
    )


def choice(*words: str) -> OptionType:
    """One of these words."""

    def read(name: str, value: Any) -> str:
        if value not in words:
            raise ClusterError(f"{name} must be one of {', '.join(words)}, not {value!r:.80}")
        return str(value)

    return OptionType({"type": "string", "enum": list(words)}, read, words=words)


def choice_or_broker(*words: str) -> OptionType:
    """One of these words, or a broker id; null in JSON for None."""
    expected = f"{', '.join(words)} or a broker id"

    def read(name: str, value: Any) -> str | int | None:
        if isinstance(value, str):
            return from_text(value)
        is_id = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
        if value is not None and not is_id:
            raise ClusterError(f"{name} must be {expected}, not {value!r:.80}")
        return value  # type: ignore[no-any-return]

    def from_text(text: str) -> str | int | None:
        is_id = text.isascii() and text.isdigit() and len(text) < 11
        if text not in words and not is_id:
            raise ClusterError(f"{text!r:.80} is not {expected}")
        return int(text) if is_id else text

    schema = {"type": ["string", "null"], "examples": [words[0], "2"]}
    return OptionType(schema, read, "|".join((*words, "ID")), from_text)


def integer(lowest: int, highest: int | None = None) -> OptionType:
    """An integer between these bounds."""
    most = MAX_INTEGER if highest is None else highest

    def read(name: str, value: Any) -> int:
        number = integer_of(name, value)
        if not lowest <= number <= most:
            raise ClusterError(f'"{name}" is {number}; it must be between {lowest} and {most}')
        return number

    schema = {"type": "integer", "minimum": lowest, "maximum": most}
    return OptionType(schema, read, bounds=(lowest, highest))


def interval(longest: int = _LONGEST_MS) -> OptionType:
    """Milliseconds, a duration on a command line; None for never."""
    return replace(
        nullable(integer(1, longest)),
        metavar="DURATION|off",
        from_text=duration_or_off,
        to_text=_duration_text,
    )


def nullable(type: OptionType) -> OptionType:
    """The same type, with null in JSON for None."""
    return replace(
        type,
        schema={**type.schema, "type": [type.schema["type"], "null"]},
        from_json=lambda name, value: None if value is None else type.from_json(name, value),
    )


def text(metavar: str = "", *examples: str) -> OptionType:
    """A text."""
    return OptionType(_text_schema(*examples), text_of, metavar)


def texts(metavar: str, *examples: list[str]) -> OptionType:
    """Several texts, each from a flag of its own."""
    schema = {"type": "array", "items": _text_schema(), **_examples(examples)}
    return OptionType(schema, texts_of, metavar, collect=tuple)


def _text_schema(*examples: str) -> dict[str, Any]:
    return {"type": "string", **_examples(examples)}


def _examples(examples: Sequence[Any]) -> dict[str, Any]:
    return {"examples": list(examples)} if examples else {}


DELAY: Final = replace(
    integer(0, _LONGEST_MS),
    metavar="DURATION|off",
    from_text=lambda text: 0 if text == "off" else parse_milliseconds(text),
    to_text=_duration_text,
)
"""Milliseconds, a duration on a command line; 0 for none."""
SIZE: Final = replace(integer(1), metavar="SIZE", from_text=parse_size, to_text=_size_text)
"""Bytes."""
CONFIGS: Final = OptionType({"type": "object", "additionalProperties": _text_schema()}, _configs_of)
"""Values of configs by name."""
CONFIGS_BY_BROKER: Final = OptionType(
    {"type": "object", "additionalProperties": CONFIGS.schema},
    lambda name, value: by_broker(name, value, _configs_of),
)
FIXES: Final = OptionType(
    {
        "type": "object",
        "additionalProperties": {"type": "boolean"},
        "examples": [{"KAFKA-19233": False}],
    },
    lambda name, value: object_of(name, value, flag_of),
    "KAFKA-NUMBER=on|off",
    switched_fix,
    collect=dict,
)
"""Whether brokers have fixes of Kafka, by issue."""
FEATURES: Final = OptionType(
    {
        "type": "object",
        "additionalProperties": {"type": "integer", "minimum": 0},
        "examples": [{"transaction.version": 1}],
    },
    lambda name, value: object_of(name, value, integer_of),
    "NAME=LEVEL",
    feature_level,
    collect=dict,
)
"""Levels of features by name."""
