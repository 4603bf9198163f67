"""Validation of config values, with Kafka's error texts (``ConfigDef``)."""

from __future__ import annotations

import decimal
import math
import re
from typing import Final

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.simulation.configs.definitions import ConfigDefinition, ConfigType

__all__ = ["check_value", "config_problem", "config_type_number", "items_of", "shown_value"]

_TYPE_NUMBERS: dict[ConfigType, int] = {
    "UNKNOWN": 0, "BOOLEAN": 1, "STRING": 2, "INT": 3, "SHORT": 4, "LONG": 5, "DOUBLE": 6,
    "LIST": 7, "CLASS": 8, "PASSWORD": 9,
}  # fmt: skip

_INTEGER_BITS = {"SHORT": 16, "INT": 32, "LONG": 64}
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?)")
_OFFSET_RESET = re.compile(r"earliest|latest|by_duration:(?P<duration>.*)", re.DOTALL)
_DURATION = re.compile(
    r"([+-]?)P(?=.)(?:([+-]?[0-9]+)D)?(?:T(?=.)(?:([+-]?[0-9]+)H)?(?:([+-]?[0-9]+)M)?"
    r"(?:([+-]?[0-9]+(?:[.,][0-9]{0,9})?)S)?)?",
    re.IGNORECASE,
)
"""As ``java.time.Duration`` reads it."""
_REPLICA = re.compile(r"(?:[0-9]+:[0-9]+)?")


_FORMATS = {
    "0.8.0": 0, "0.8.1": 0, "0.8.2": 0, "0.9.0": 0, "0.10.0": 2, "0.10.1": 3, "0.10.2": 1,
    "0.11.0": 3, "1.0": 1, "1.1": 1, "2.0": 2, "2.1": 3, "2.2": 2, "2.3": 2, "2.4": 2, "2.5": 1,
    "2.6": 1, "2.7": 3, "2.8": 2, "3.0": 2, "3.1": 1, "3.2": 1, "3.3": 4, "3.4": 1, "3.5": 3,
    "3.6": 3, "3.7": 5, "3.8": 1, "3.9": 1,
}  # fmt: skip
"""How many steps of the inter-broker protocol, such as 2.1-IV0, each line of releases has."""


_NO_LEVEL: Final = -1
_MOST_GZIP: Final = 9
_OF_KAFKA: Final = "org.apache.kafka."
"""Where the classes are that every broker has."""


def config_type_number(config_type: ConfigType) -> int:
    """Return the number of a type in DescribeConfigs (``ConfigEntry.ConfigType``)."""
    return _TYPE_NUMBERS[config_type]


def check_value(definition: ConfigDefinition, value: str) -> None:
    """Raise Refusal (40) for a value that Kafka refuses."""
    if definition.type == "BOOLEAN":
        if value.strip().lower() not in ("true", "false"):
            raise _bad(definition, value, "Expected value to be either true or false")
    elif definition.type in ("SHORT", "INT", "LONG", "DOUBLE"):
        _check_range(definition, _number(definition, value))
    elif definition.type == "LIST":
        _check_items(definition, items_of(value))
    elif definition.type == "CLASS":
        if not value.strip().startswith(_OF_KAFKA):
            raise _bad(definition, value.strip(), f"Class {value.strip()} could not be found.")
    elif definition.type == "STRING":
        _check_choice(definition, value.strip())
        if definition.of_formats and not _is_format(value.strip()):
            raise _bad(definition, value.strip(), definition.of_formats.format(value.strip()))
        if definition.of_offsets:
            _check_offset_reset(definition, value.strip())


def items_of(value: str) -> list[str]:
    """Return the items of a list without spaces around them. Only a blank text has none: a comma
    has an empty item on each side."""
    return [item.strip() for item in value.split(",")] if value.strip() else []


def _check_items(definition: ConfigDefinition, items: list[str]) -> None:
    if definition.of_replicas:
        _check_replicas(definition, items)
        return
    what = f"Configuration '{definition.name}' values must not be"
    if definition.items_differ and len(set(items)) < len(items):
        raise Refusal(ErrorCode.INVALID_CONFIG, f"{what} duplicated.")
    for item in items:
        if (definition.items_once or definition.items_differ) and not item:
            raise Refusal(ErrorCode.INVALID_CONFIG, f"{what} empty.")
        _check_choice(definition, item)


def config_problem(definition: ConfigDefinition, value: str) -> str:
    """Return why Kafka refuses a value, as its text without the name; empty if it does not."""
    try:
        check_value(definition, value)
    except Refusal as refusal:
        return (refusal.message or "").replace(f" for configuration {definition.name}", "", 1)
    return ""


def shown_value(definition: ConfigDefinition, value: str) -> str:
    """Return a value as DescribeConfigs formats it after parsing."""
    if definition.type == "LIST":
        items = items_of(value)
        return ",".join(dict.fromkeys(items) if definition.items_once else items)
    return value.strip().lower() if definition.type == "BOOLEAN" else value.strip()


def _number(definition: ConfigDefinition, value: str) -> float:
    """Read a number. The text of a refusal has the value with the white space around it."""
    text = value.strip()
    if definition.type == "DOUBLE" and _DOUBLE.fullmatch(text):
        return float(text.rstrip("dDfF"))
    if definition.type != "DOUBLE" and _INTEGER.fullmatch(text):
        half = 1 << (_INTEGER_BITS[definition.type] - 1)
        if -half <= int(text) < half:
            return int(text)
    raise _bad(definition, value, f"Not a number of type {definition.type}")


def _check_range(definition: ConfigDefinition, number: float) -> None:
    if definition.of_levels and not (number == _NO_LEVEL or 1 <= number <= _MOST_GZIP):
        why = f"Value must be between 1 and {_MOST_GZIP} or equal to {_NO_LEVEL}"
        raise _bad(definition, str(number), why)
    if definition.minimum is not None and number < definition.minimum:
        raise _bad(
            definition, _java(number), f"Value must be at least {_plain(definition.minimum)}"
        )
    if definition.maximum is not None and number > definition.maximum:
        raise _bad(
            definition, _java(number), f"Value must be no more than {_plain(definition.maximum)}"
        )


_DIGITS_FROM: Final = 1e7
"""From here on, and below a thousandth, Java writes doubles with an exponent."""


def _java(number: float) -> str:
    """Format a number as Java does: ``9.2E18``, ``1.0E-4``."""
    size = abs(number)
    if isinstance(number, int) or not math.isfinite(number):
        return str(number).replace("inf", "Infinity")
    if size == 0 or 1e-3 <= size < _DIGITS_FROM:
        return repr(number)
    digits, exponent = decimal.Decimal(repr(number)).normalize().as_tuple()[1:]
    first, *rest = map(str, digits)
    sign = "-" if number < 0 else ""
    return f"{sign}{first}.{''.join(rest) or '0'}E{int(exponent) + len(rest)}"


def _plain(number: float) -> str:
    """Format a whole number with all of its digits."""
    return str(int(number)) if number == int(number) else f"{number:g}"


def _check_replicas(definition: ConfigDefinition, items: list[str]) -> None:
    says = items[0] if items and definition.first_counts else "".join(items)
    if says == "*" or all(_REPLICA.fullmatch(item) for item in items):
        return
    raise _bad(
        definition,
        f"[{', '.join(items)}]",
        f"{definition.name} must be the literal '*' or a list of replicas in the following format: "
        f"{definition.of_replicas}",
    )


def _is_format(text: str) -> bool:
    """Whether it names a version of the message format. Kafka looks at its first numbers only."""
    numbers = text.split(".")[: 3 if text.startswith("0.") else 2]
    line, _, step = ".".join(numbers).partition("-IV")
    return line in _FORMATS and (not step or (step.isdigit() and int(step) < _FORMATS[line]))


def _is_duration(text: str) -> bool:
    """Whether it is a duration that is not negative."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return False
    sign, *parts = match.groups()
    days, hours, minutes, seconds = (float((part or "0").replace(",", ".")) for part in parts)
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return (-total if sign == "-" else total) >= 0


def _check_offset_reset(definition: ConfigDefinition, value: str) -> None:
    found = _OFFSET_RESET.fullmatch(value)
    duration = None if found is None else found["duration"]
    if found is not None and (duration is None or _is_duration(duration)):
        return
    raise _bad(
        definition,
        value,
        f"Invalid value `{value}` for configuration {definition.name}. The value must be either "
        f"'earliest', 'latest' or of the format 'by_duration:{definition.of_offsets}'.",
    )


def _check_choice(definition: ConfigDefinition, value: str) -> None:
    if definition.choices and value not in definition.choices:
        raise _bad(definition, value, f"String must be one of: {', '.join(definition.choices)}")


def _bad(definition: ConfigDefinition, value: str, why: str) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_CONFIG,
        f"Invalid value {value} for configuration {definition.name}: {why}",
    )
