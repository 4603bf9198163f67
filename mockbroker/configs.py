"""Configs of topics and brokers: their effective values, DescribeConfigs, IncrementalAlterConfigs.

Precedence is Kafka's: the topic's own value, then the broker's dynamic one, then the cluster-wide
dynamic default, then the static one, then the built-in default. What a value *does* is the
business of the rules that read it. Checking a value is ``config_values``'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kproto.error_codes import ErrorCode
from mockbroker.actions import ConfigChanged
from mockbroker.config_definitions import BROKER_CONFIGS, TOPIC_CONFIGS, ConfigDefinition
from mockbroker.config_values import check_value, config_type_number
from mockbroker.controller import BROKER, TOPIC, ClusterState, Controller
from mockbroker.errors import Refusal
from mockbroker.results import (
    AlterConfigsResult,
    ConfigEntry,
    ConfigSynonym,
    DescribeConfigsResult,
)
from mockbroker.topic_names import check_topic_name

__all__ = [
    "alter_incrementally",
    "broker_entry",
    "created_topic_entries",
    "describe",
    "integer",
    "store_new",
    "topic_entry",
    "topic_values",
    "unclean_election_enabled",
]

# ConfigSource numbers of DescribeConfigs.
DYNAMIC_TOPIC: Final = 1
DYNAMIC_BROKER: Final = 2
DYNAMIC_DEFAULT_BROKER: Final = 3
STATIC_BROKER: Final = 4
DEFAULT: Final = 5

SET, DELETE, APPEND, SUBTRACT = range(4)
_OPERATION_NAMES = ("SET", "DELETE", "APPEND", "SUBTRACT")


# ---- effective values ----------------------------------------------------------------------------


def unclean_election_enabled(state: ClusterState, topic: str) -> bool:
    """Whether a leader that is not in sync may be elected for this topic."""
    return topic_entry(state, topic, "unclean.leader.election.enable").value == "true"


def topic_entry(state: ClusterState, topic: str, name: str) -> ConfigEntry:
    """One topic config, as the controller sees it. KeyError for a name Kafka does not have."""
    overrides = state.configs.get((TOPIC, topic), {})
    return _topic_entry(state, TOPIC_CONFIGS[name], overrides, state.controller_id)


def broker_entry(state: ClusterState, broker_id: int, name: str) -> ConfigEntry:
    """One broker config of one broker. KeyError for a name this mock does not have."""
    return _entry(BROKER_CONFIGS[name], _broker_synonyms(state, BROKER_CONFIGS[name], broker_id))


def created_topic_entries(
    state: ClusterState, overrides: Mapping[str, str]
) -> tuple[ConfigEntry, ...]:
    """The configs a topic would have with these overrides: what CreateTopics returns."""
    return tuple(
        _topic_entry(state, definition, overrides, state.controller_id)
        for definition in TOPIC_CONFIGS.values()
    )


def _topic_entry(
    state: ClusterState, definition: ConfigDefinition, overrides: Mapping[str, str], broker_id: int
) -> ConfigEntry:
    synonyms = []
    if definition.name in overrides:
        synonyms.append(ConfigSynonym(definition.name, overrides[definition.name], DYNAMIC_TOPIC))
    if definition.synonym is not None:
        synonyms += _broker_synonyms(state, BROKER_CONFIGS[definition.synonym], broker_id)
    else:
        synonyms.append(ConfigSynonym(definition.name, definition.default, DEFAULT))
    return _entry(definition, synonyms)


def _broker_synonyms(
    state: ClusterState, definition: ConfigDefinition, broker_id: int
) -> list[ConfigSynonym]:
    """Where a broker config's value could come from, the winner first."""
    name = definition.name
    found = []
    for resource, source in ((broker_id, DYNAMIC_BROKER), ("", DYNAMIC_DEFAULT_BROKER)):
        value = state.configs.get((BROKER, str(resource)), {}).get(name)
        if value is not None:
            found.append(ConfigSynonym(name, value, source))
    static = _static_value(state, broker_id, name)
    if static is not None:
        found.append(ConfigSynonym(name, static, STATIC_BROKER))
    if definition.default is not None:
        found.append(ConfigSynonym(name, definition.default, DEFAULT))
    return found


def _static_value(state: ClusterState, broker_id: int, name: str) -> str | None:
    """What this broker's properties file would say."""
    broker = state.brokers.get(broker_id)
    if broker is None:
        return None
    if name in state.static_configs:
        return state.static_configs[name]
    match name:
        case "broker.id" | "node.id":
            return str(broker_id)
        case "broker.rack":
            return broker.rack
        case "listeners" | "advertised.listeners":
            return f"PLAINTEXT://{broker.host}:{broker.port}"
    return None


def _entry(definition: ConfigDefinition, synonyms: Sequence[ConfigSynonym]) -> ConfigEntry:
    sensitive = definition.type in ("PASSWORD", "UNKNOWN")
    shown = [ConfigSynonym(s.name, None, s.source) for s in synonyms] if sensitive else synonyms
    return ConfigEntry(
        name=definition.name,
        value=shown[0].value if shown else definition.default,
        read_only=not definition.dynamic,
        source=shown[0].source if shown else DEFAULT,
        sensitive=sensitive,
        config_type=config_type_number(definition.type),
        documentation=None,
        synonyms=tuple(shown),
    )


# ---- DescribeConfigs -----------------------------------------------------------------------------


def describe(
    state: ClusterState,
    resource_type: int,
    resource_name: str,
    names: Sequence[str] | None,
    *,
    asked_broker: int | None,
) -> DescribeConfigsResult:
    """One resource. ``names`` None or empty means all. A broker answers only for itself and for
    the cluster-wide default: ``asked_broker`` is the one the request reached (None: any)."""
    try:
        entries = tuple(_describe(state, resource_type, resource_name, asked_broker))
    except Refusal as refusal:
        return DescribeConfigsResult(resource_type, resource_name, refusal.code, refusal.message)
    if names:
        entries = tuple(entry for entry in entries if entry.name in names)
    return DescribeConfigsResult(resource_type, resource_name, configs=entries)


def _describe(
    state: ClusterState, resource_type: int, resource_name: str, asked_broker: int | None
) -> Iterator[ConfigEntry]:
    if resource_type == TOPIC:
        check_topic_name(resource_name)
        if resource_name not in state.topics:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        overrides = state.configs.get((TOPIC, resource_name), {})
        seen_from = state.controller_id if asked_broker is None else asked_broker
        for definition in TOPIC_CONFIGS.values():
            yield _topic_entry(state, definition, overrides, seen_from)
    elif resource_type == BROKER and resource_name == "":
        # Only what is set dynamically for the whole cluster.
        for name, value in sorted(state.configs.get((BROKER, ""), {}).items()):
            synonym = ConfigSynonym(name, value, DYNAMIC_DEFAULT_BROKER)
            yield _entry(_broker_definition(name), [synonym])
    elif resource_type == BROKER:
        broker_id = _described_broker(resource_name, asked_broker)
        extra = {
            name
            for resource in ("", str(broker_id))
            for name in state.configs.get((BROKER, resource), {})
        }
        shown = {name for name, definition in BROKER_CONFIGS.items() if not definition.only_set}
        for name in sorted(extra | shown):
            definition = _broker_definition(name)
            yield _entry(definition, _broker_synonyms(state, definition, broker_id))
    else:
        raise _invalid(f"Unsupported resource type: {resource_type}")


def _described_broker(resource_name: str, asked_broker: int | None) -> int:
    broker_id = integer(resource_name)
    if broker_id is None:
        raise _invalid(f"Broker id must be an integer, but it is: {resource_name}")
    if asked_broker is not None and broker_id != asked_broker:
        raise _invalid(
            f"Unexpected broker id, expected {asked_broker} or empty string, "
            f"but received {resource_name}"
        )
    return broker_id


def _broker_definition(name: str) -> ConfigDefinition:
    """A broker takes configs it does not know (plugins read them) and treats them as secrets."""
    return BROKER_CONFIGS.get(name) or ConfigDefinition(name, "UNKNOWN", None)


# ---- IncrementalAlterConfigs ---------------------------------------------------------------------


def alter_incrementally(
    controller: Controller,
    resources: Sequence[tuple[int, str, Sequence[tuple[str, int, str | None]]]],
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
            _check_resource(controller.state, resource_type, name)
            current = controller.state.configs.get(key, {})
            after = _altered(resource_type, current, operations)
        except Refusal as refusal:
            results[key] = AlterConfigsResult(resource_type, name, refusal.code, refusal.message)
            continue
        results[key] = AlterConfigsResult(resource_type, name)
        if not validate_only:
            _store(controller, "incremental_alter_configs", key, dict(current), after)
    return tuple(results.values())


def topic_values(configs: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    """Check the configs of a topic to be created and return them; refuses as CreateTopics does."""
    nulls = [name for name, value in configs if value is None]
    if nulls:
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    return _altered(TOPIC, {}, [(name, SET, value) for name, value in dict(configs).items()])


def _check_resource(state: ClusterState, resource_type: int, name: str) -> None:
    if resource_type == TOPIC:
        check_topic_name(name)
        if name not in state.topics:
            raise Refusal(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
    elif resource_type == BROKER:
        broker_id = integer(name)
        if name and broker_id is None:
            raise _invalid("Unable to parse broker name as a base 10 number.")
        if broker_id is not None and broker_id < 0:
            raise _invalid("Invalid negative broker ID.")
        if broker_id is not None and broker_id not in state.brokers:
            raise Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {broker_id} found.")
    else:
        raise _invalid(f"Unsupported resource type: {resource_type}")


def _altered(
    resource_type: int,
    current: Mapping[str, str],
    operations: Sequence[tuple[str, int, str | None]],
) -> dict[str, str]:
    """All values of the resource after the operations; the resulting values are checked."""
    if len({name for name, _, _ in operations}) < len(operations):
        raise _invalid("Error due to duplicate config keys")
    nulls = [name for name, operation, value in operations if operation != DELETE and value is None]
    if nulls:
        raise _invalid(f"Null value not supported for : {','.join(nulls)}")
    after = dict(current)
    for name, operation, value in operations:
        definition = _alterable(resource_type, name)
        new = _operated(definition, after.get(name), operation, value or "")
        if new is None:
            after.pop(name, None)
        else:
            check_value(definition, new)
            after[name] = new
    return after


def _alterable(resource_type: int, name: str) -> ConfigDefinition:
    if resource_type == BROKER:
        definition = _broker_definition(name)
        if not definition.dynamic:
            raise _invalid(f"Cannot update these configs dynamically: Set({name})")
        return definition
    if name not in TOPIC_CONFIGS:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    return TOPIC_CONFIGS[name]


def _operated(
    definition: ConfigDefinition, current: str | None, operation: int, value: str
) -> str | None:
    if operation == SET:
        return value
    if operation == DELETE:
        return None
    if operation not in (APPEND, SUBTRACT):
        # What becomes of a null pointer in Kafka.
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    if definition.type != "LIST":
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            f"Can't {_OPERATION_NAMES[operation]} to key {definition.name} "
            "because its type is not LIST.",
        )
    present = current if current is not None else definition.default or ""
    items = [item for item in present.split(",") if item]
    for item in value.split(","):
        if operation == APPEND and item not in items:
            items.append(item)
        elif operation == SUBTRACT and item in items:
            items.remove(item)
    return ",".join(items)


def store_new(controller: Controller, topic: str, values: Mapping[str, str]) -> None:
    """Set the configs of a topic just created."""
    _store(controller, "create_topics", (TOPIC, topic), {}, values)


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


def integer(text: str) -> int | None:
    """The number a broker resource is called by; None where the name is none."""
    try:
        return int(text)
    except ValueError:
        return None


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
