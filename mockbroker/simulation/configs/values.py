"""Validation of config values, with Kafka's error texts (``ConfigDef``)."""

from __future__ import annotations

import re

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.simulation.configs.definitions import ConfigDefinition, ConfigType

__all__ = ["check_value", "config_type_number", "shown_value"]

_TYPE_NUMBERS: dict[ConfigType, int] = {
    "UNKNOWN": 0, "BOOLEAN": 1, "STRING": 2, "INT": 3, "SHORT": 4, "LONG": 5, "DOUBLE": 6,
    "LIST": 7, "CLASS": 8, "PASSWORD": 9,
}  # fmt: skip

_INTEGER_BITS = {"SHORT": 16, "INT": 32, "LONG": 64}
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_REPLICA = re.compile(r"(?:[0-9]+:[0-9]+)?")


def config_type_number(config_type: ConfigType) -> int:
    """Return the number of a type in DescribeConfigs (``ConfigEntry.ConfigType``)."""
    return _TYPE_NUMBERS[config_type]


def check_value(definition: ConfigDefinition, value: str) -> None:
    """Raise Refusal (40) for a value that Kafka refuses."""
    if definition.type == "BOOLEAN":
        if value.strip().lower() not in ("true", "false"):
            raise _bad(definition, value, "Expected value to be either true or false")
    elif definition.type in ("SHORT", "INT", "LONG", "DOUBLE"):
        _check_range(definition, _number(definition, value.strip()))
    elif definition.type == "LIST":
        items = [part.strip() for part in value.split(",") if part.strip()]
        for item in items:
            _check_choice(definition, item)
        if definition.of_replicas:
            _check_replicas(definition, items)
    else:
        _check_choice(definition, value)


def shown_value(definition: ConfigDefinition, value: str) -> str:
    """Return a value as DescribeConfigs formats it after parsing."""
    if definition.type == "LIST":
        return ",".join(part.strip() for part in value.split(","))
    return value.strip().lower() if definition.type == "BOOLEAN" else value.strip()


def _number(definition: ConfigDefinition, value: str) -> float:
    if definition.type == "DOUBLE":
        try:
            return float(value)
        except ValueError:
            raise _bad(definition, value, "Not a number of type DOUBLE") from None
    half = 1 << (_INTEGER_BITS[definition.type] - 1)
    if not _INTEGER.fullmatch(value) or not -half <= int(value) < half:
        raise _bad(definition, value, f"Not a number of type {definition.type}")
    return int(value)


def _check_range(definition: ConfigDefinition, number: float) -> None:
    if definition.minimum is not None and not number >= definition.minimum:
        raise _bad(definition, str(number), f"Value must be at least {_plain(definition.minimum)}")
    if definition.maximum is not None and not number <= definition.maximum:
        raise _bad(
            definition, str(number), f"Value must be no more than {_plain(definition.maximum)}"
        )


def _plain(number: float) -> str:
    """Format a whole number with all of its digits."""
    return str(int(number)) if number == int(number) else f"{number:g}"


def _check_replicas(definition: ConfigDefinition, items: list[str]) -> None:
    if items == ["*"] or all(_REPLICA.fullmatch(item) for item in items):
        return
    raise _bad(
        definition,
        f"[{', '.join(items)}]",
        f"{definition.name} must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    )


def _check_choice(definition: ConfigDefinition, value: str) -> None:
    if definition.choices and value not in definition.choices:
        raise _bad(definition, value, f"String must be one of: {', '.join(definition.choices)}")


def _bad(definition: ConfigDefinition, value: str, why: str) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_CONFIG,
        f"Invalid value {value} for configuration {definition.name}: {why}",
    )
