"""Changing configs: IncrementalAlterConfigs (44), and the configs of topics to be created.

What a broker refuses before its controller hears of it comes first; the rest, and its order, is
``topics.eras``'s. Checking a value is ``values``'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from kproto.error_codes import ErrorCode
from mockbroker.configs.definitions import ConfigDefinition
from mockbroker.configs.effective import broker_definition, integer
from mockbroker.configs.values import check_value
from mockbroker.errors import Refusal
from mockbroker.state.actions import ConfigChanged
from mockbroker.state.controller import BROKER, TOPIC, ClusterState, Controller
from mockbroker.state.results import AlterConfigsResult
from mockbroker.state.topic_names import check_topic_name

__all__ = ["alter_incrementally", "check_no_nulls", "store_new", "topic_values"]

SET, DELETE, APPEND, SUBTRACT = range(4)
_OPERATION_NAMES: Final = {APPEND: "append", SUBTRACT: "subtract"}

_NOT_A_LIST: Final = "Config value {operation} is not allowed for config key: {name}"
_NULL_POINTER: Final = (
    'Cannot invoke "String.split(String)" because the return value of '
    '"java.util.Properties.getProperty(String)" is null'
)
"""In the words of Java 15 and later; before, a NullPointerException had none."""

_Operations: TypeAlias = Sequence[tuple[str, int, str | None]]
"""[(config, operation, value)]"""


def alter_incrementally(
    controller: Controller,
    resources: Sequence[tuple[int, str, _Operations]],
    *,
    validate_only: bool,
) -> tuple[AlterConfigsResult, ...]:
    """Each resource is changed wholly or not at all; a resource named twice is refused once."""
    repeated = {key for key, times in Counter((r[0], r[1]) for r in resources).items() if times > 1}
    results: dict[tuple[int, str], AlterConfigsResult] = {}
    for resource_type, name, operations in resources:
        key = (resource_type, name)
        try:
            if key in repeated:
                raise _invalid("Each resource must appear at most once.")
            after = _altered(controller, resource_type, name, operations)
        except Refusal as refusal:
            results[key] = AlterConfigsResult(resource_type, name, refusal.code, refusal.message)
            continue
        results[key] = AlterConfigsResult(resource_type, name)
        if not validate_only:
            before = dict(controller.state.configs.get(key, {}))
            _store(controller, "incremental_alter_configs", key, before, after)
    return tuple(results.values())


def check_no_nulls(configs: Sequence[tuple[str, str | None]]) -> None:
    """Refuse as CreateTopics does."""
    nulls = [name for name, value in configs if value is None]
    if nulls:
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )


def topic_values(
    controller: Controller, configs: Sequence[tuple[str, str | None]]
) -> dict[str, str]:
    """Check the configs of a topic to be created and return them; refuses as CreateTopics does."""
    values = {name: value or "" for name, value in configs}
    _check_values(controller.state, TOPIC, values)
    return values


def store_new(controller: Controller, topic: str, values: Mapping[str, str]) -> None:
    """Set the configs of a topic just created."""
    _store(controller, "create_topics", (TOPIC, topic), {}, values)


# ---- one resource --------------------------------------------------------------------------------


def _altered(
    controller: Controller, resource_type: int, name: str, operations: _Operations
) -> dict[str, str]:
    """All values of the resource after the operations."""
    era = controller.administration.configs
    times = Counter(config for config, _, _ in operations)
    repeated = [config for config, count in times.items() if count > 1]
    if repeated:
        raise _invalid(era.repeated.format(names=",".join(repeated)))
    nulls = [config for config, how, value in operations if how != DELETE and value is None]
    if nulls:
        raise _invalid(f"Null value not supported for : {', '.join(nulls)}")
    if resource_type == BROKER:
        _check_broker(controller.state, name)
        return _altered_broker(controller, name, operations)
    if resource_type != TOPIC:
        raise _invalid(f"Unknown resource type {resource_type}")
    return _altered_topic(controller, name, operations)


def _altered_topic(controller: Controller, name: str, operations: _Operations) -> dict[str, str]:
    """Operations are applied before anybody looks for the topic."""
    era = controller.administration.configs
    after = _edited(controller, TOPIC, name, operations, era.not_a_list)
    if not name:
        raise _invalid("Default topic resources are not allowed.")
    if era.names_checked:
        check_topic_name(name)
    if not era.values_first:
        _check_exists(controller, name)
    try:
        _check_values(controller.state, TOPIC, _touched(after, operations))
    except _BadValue as bad:
        raise Refusal(era.wrong, era.bad_value.format(topic=name, problem=bad.message)) from None
    _check_exists(controller, name)
    return after


def _altered_broker(controller: Controller, name: str, operations: _Operations) -> dict[str, str]:
    """A broker looks at configs of brokers itself, whoever its controller is."""
    after = _edited(controller, BROKER, name, operations, _NOT_A_LIST)
    static = [
        config for config, _, _ in operations
        if not broker_definition(controller.state, config).dynamic
    ]  # fmt: skip
    if static:
        names = ", ".join(sorted(static))
        raise _invalid(controller.administration.configs.static.format(names=names))
    try:
        _check_values(controller.state, BROKER, _touched(after, operations))
    except _BadValue as bad:
        # Kafka's own mistake, it says (KAFKA-13609), and cannot be mended now.
        raise Refusal(ErrorCode.INVALID_REQUEST, bad.message) from None
    return after


def _touched(after: Mapping[str, str], operations: _Operations) -> dict[str, str]:
    return {name: after[name] for name, how, _ in operations if how != DELETE}


def _check_exists(controller: Controller, name: str) -> None:
    if name not in controller.state.topics:
        code, text = controller.administration.configs.unknown_topic
        raise Refusal(code, text.format(name=name))


def _check_broker(state: ClusterState, name: str) -> None:
    broker_id = integer(name)
    if name and broker_id is None:
        raise _invalid("Unable to parse broker name as a base 10 number.")
    if broker_id is not None and broker_id < 0:
        raise _invalid("Invalid negative broker ID.")
    if broker_id is not None and broker_id not in state.brokers:
        raise Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {broker_id} found.")


def _edited(
    controller: Controller,
    resource_type: int,
    name: str,
    operations: _Operations,
    not_a_list: str,
) -> dict[str, str]:
    """All values after the operations, unchecked."""
    era = controller.administration.configs
    after = dict(controller.state.configs.get((resource_type, name), {}))
    for config, how, value in operations:
        if how == DELETE:
            after.pop(config, None)
        elif how == SET:
            after[config] = value or ""
        elif how in _OPERATION_NAMES:
            definition = _definition(controller.state, resource_type, config)
            if definition.type != "LIST":
                verb = _OPERATION_NAMES[how]
                text = not_a_list.format(operation=verb, OPERATION=verb.upper(), name=config)
                raise Refusal(era.wrong, text)
            present = after.get(config)
            if present is None and era.null_lists:
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, _NULL_POINTER)
            present = definition.default or "" if present is None else present
            edited = _edited_text if era.lists == "texts" else _edited_set
            after[config] = edited(present, how, value or "")
        else:
            # What becomes of a null pointer in Kafka.
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    return after


def _edited_set(present: str, how: int, value: str) -> str:
    items = [item for item in present.split(",") if item]
    for item in value.split(","):
        if how == APPEND and item not in items:
            items.append(item)
        elif how == SUBTRACT and item in items:
            items.remove(item)
    return ",".join(items)


def _edited_text(present: str, how: int, value: str) -> str:
    """Nothing is an item, too: what is appended to an empty list has a comma before it."""
    items, changed = _java_split(present), _java_split(value)
    if how == APPEND:
        items += changed
    else:
        for item in changed:
            if item in items:
                items.remove(item)
    return ",".join(items)


def _java_split(text: str) -> list[str]:
    """``String.split(",")``: of an empty text itself, of any other without empty items at its
    end."""
    if not text:
        return [""]
    items = text.split(",")
    while items and not items[-1]:
        items.pop()
    return items


# ---- values --------------------------------------------------------------------------------------


class _BadValue(Refusal):
    """A value, rather than a name, is not possible."""


def _check_values(state: ClusterState, resource_type: int, values: Mapping[str, str]) -> None:
    if resource_type == TOPIC:
        for name in values:
            if name not in state.definitions.topic:
                raise Refusal(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    for name, value in values.items():
        try:
            check_value(_definition(state, resource_type, name), value)
        except Refusal as refusal:
            raise _BadValue(refusal.code, refusal.message) from None


def _definition(state: ClusterState, resource_type: int, name: str) -> ConfigDefinition:
    if resource_type == TOPIC:
        return state.definitions.topic.get(name) or ConfigDefinition(name, "UNKNOWN", None)
    return broker_definition(state, name)


def _store(
    controller: Controller,
    cause: str,
    key: tuple[int, str],
    before: Mapping[str, str],
    after: Mapping[str, str],
) -> None:
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            change = ConfigChanged(*key, name, before.get(name), after.get(name))
            controller.record(cause, change)


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
