"""Configs of topics and brokers: their effective values, and DescribeConfigs (32).

Precedence is Kafka's: the topic's own value, then the broker's dynamic one, then the cluster-wide
dynamic default, then the static one, then the built-in default. What a value *does* is the
business of the rules that read it. Changing configs is ``changes``'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kproto.error_codes import ErrorCode
from mockbroker.configs.definitions import ConfigDefinition
from mockbroker.configs.values import config_type_number, shown_value
from mockbroker.errors import Refusal
from mockbroker.state.controller import BROKER, TOPIC, ClusterState
from mockbroker.state.results import (
    ConfigEntry,
    ConfigSynonym,
    DescribeConfigsResult,
)
from mockbroker.state.topic_names import check_topic_name

__all__ = [
    "broker_definition",
    "broker_entry",
    "created_topic_entries",
    "describe",
    "integer",
    "topic_entry",
    "unclean_election_enabled",
]

# ConfigSource numbers of DescribeConfigs.
DYNAMIC_TOPIC: Final = 1
DYNAMIC_BROKER: Final = 2
DYNAMIC_DEFAULT_BROKER: Final = 3
STATIC_BROKER: Final = 4
DEFAULT: Final = 5


# ---- effective values ----------------------------------------------------------------------------


def unclean_election_enabled(state: ClusterState, topic: str) -> bool:
    """Whether a leader that is not in sync may be elected for this topic."""
    return topic_entry(state, topic, "unclean.leader.election.enable").value == "true"


def topic_entry(state: ClusterState, topic: str, name: str) -> ConfigEntry:
    """One topic config, as the controller sees it. KeyError for a name Kafka does not have."""
    overrides = state.configs.get((TOPIC, topic), {})
    return _topic_entry(state, state.definitions.topic[name], overrides, state.controller_id)


def broker_entry(state: ClusterState, broker_id: int, name: str) -> ConfigEntry:
    """One broker config of one broker. KeyError for a name this mock does not have."""
    definition = state.definitions.broker[name]
    return _entry(definition, _broker_synonyms(state, definition, broker_id))


def created_topic_entries(
    state: ClusterState, overrides: Mapping[str, str]
) -> tuple[ConfigEntry, ...]:
    """The configs a topic would have with these overrides: what CreateTopics returns."""
    return tuple(
        _topic_entry(state, definition, overrides, state.controller_id)
        for definition in state.definitions.topic.values()
    )


def _topic_entry(
    state: ClusterState, definition: ConfigDefinition, overrides: Mapping[str, str], broker_id: int
) -> ConfigEntry:
    synonyms = []
    if definition.name in overrides:
        own = shown_value(definition, overrides[definition.name])
        synonyms.append(ConfigSynonym(definition.name, own, DYNAMIC_TOPIC))
    if definition.synonym is not None:
        behind = state.definitions.broker[definition.synonym]
        synonyms += _broker_synonyms(state, behind, broker_id)
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
        read_only=definition.called_read_only or not definition.dynamic,
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
        for definition in state.definitions.topic.values():
            yield _topic_entry(state, definition, overrides, seen_from)
    elif resource_type == BROKER and resource_name == "":
        # Only what is set dynamically for the whole cluster.
        for name, value in sorted(state.configs.get((BROKER, ""), {}).items()):
            synonym = ConfigSynonym(name, value, DYNAMIC_DEFAULT_BROKER)
            yield _entry(broker_definition(state, name), [synonym])
    elif resource_type == BROKER:
        broker_id = _described_broker(resource_name, asked_broker)
        extra = {
            name
            for resource in ("", str(broker_id))
            for name in state.configs.get((BROKER, resource), {})
        }
        known = state.definitions.broker
        shown = {name for name, definition in known.items() if not definition.only_set}
        for name in sorted(extra | shown):
            definition = broker_definition(state, name)
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


def broker_definition(state: ClusterState, name: str) -> ConfigDefinition:
    """A broker takes configs it does not know (plugins read them) and treats them as secrets."""
    return state.definitions.broker.get(name) or ConfigDefinition(name, "UNKNOWN", None)


def integer(text: str) -> int | None:
    """The number a broker resource is called by; None where the name is none."""
    try:
        return int(text)
    except ValueError:
        return None


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
