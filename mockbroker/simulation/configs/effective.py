"""Effective configs of topics, groups, brokers and subscriptions, and DescribeConfigs (32).

Precedence is Kafka's: the own value of the topic or group, the broker's dynamic value, the
cluster-wide dynamic default, the static value, the built-in default. Rules read the values they
need through ``EffectiveConfigs``; ``changes`` changes them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace
from msgspec.structs import replace as replace_definition

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError, Refusal
from mockbroker.simulation.configs.definitions import ConfigDefinition, ConfigDefinitions
from mockbroker.simulation.configs.synonyms import fallbacks_of, milliseconds_of, synonyms_of
from mockbroker.simulation.configs.values import config_problem, config_type_number, shown_value
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.state.cluster_parts import TopicPartition
from mockbroker.simulation.state.cluster_state import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    ClusterState,
)
from mockbroker.simulation.state.results import ConfigEntry, ConfigSynonym, DescribeConfigsResult
from mockbroker.simulation.state.topic_names import check_topic_name

__all__ = ["UNCLEAN_ELECTION", "UNTHROTTLED", "EffectiveConfigs", "broker_as_text", "integer"]

_INTEGER: Final = re.compile(r"[+-]?\d{1,100}")
_TOO_LARGE: Final = 2**31
UNTHROTTLED: Final = 2**63 - 1
"""Java's Long.MAX_VALUE, in bytes per second."""
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"

# ConfigSource numbers of DescribeConfigs.
DYNAMIC_TOPIC: Final = 1
DYNAMIC_BROKER: Final = 2
DYNAMIC_DEFAULT_BROKER: Final = 3
STATIC_BROKER: Final = 4
DEFAULT: Final = 5
CLIENT_METRICS_CONFIG: Final = 7
DYNAMIC_GROUP: Final = 8

_IDS: Final = ("broker.id", "node.id")


_FOLLOWING: Final = ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms")
"""The configs of groups that follow those of the broker in every release. Up to 4.2 others do so
for groups without any configs alone."""


class EffectiveConfigs:
    """The configs of one cluster: its current state, and the configs that its release defines."""

    def __init__(
        self,
        state: ClusterState,
        definitions: ConfigDefinitions,
        of_broker: Callable[[int], ConfigDefinitions],
        shipped: Mapping[str, str],
        release: Release,
    ) -> None:
        """``of_broker`` returns the configs that the release of a broker defines. ``shipped``: what
        the properties file of every broker says unless the user decides."""
        self.release = release
        self._state = state
        self.definitions = definitions
        self.shipped = shipped
        self._of_broker = of_broker

    def _known(self, broker_id: int, name: str) -> ConfigDefinition | None:
        """The definition of a broker config in the broker's release, or the cluster's."""
        found = self._of_broker(broker_id).broker.get(name)
        return self.definitions.broker.get(name) if found is None else found

    # ---- effective values --------------------------------------------------------------------

    def topic(self, topic: str, name: str) -> ConfigEntry:
        """Return one topic config as the controller sees it.

        Raises ClusterError for a config that the release does not define.
        """
        definition = self.definitions.topic.get(name)
        if definition is None:
            raise ClusterError(f"there is no topic config {name!r}")
        overrides = self._state.configs.get((TOPIC, topic), {})
        return self._topic_entry(definition, overrides, self._state.controller_id)

    def topic_value(self, topic: str, name: str) -> str | None:
        """Return the value of ``topic``, without looking further for synonyms."""
        definition = self.definitions.topic[name]
        overrides = self._state.configs.get((TOPIC, topic), {})
        broker_id = self._state.controller_id
        found = next(self._topic_sources(definition, overrides, broker_id), None)
        return self._topic_default(definition, broker_id) if found is None else found.value

    def group(
        self, group_id: str, name: str, broker_id: int, *, described: bool = False
    ) -> ConfigEntry:
        """Return one config of a group, which need not exist, as a broker sees it, or as it is
        ``described``.

        Raises KeyError for a config that the release does not define.
        """
        definition = self.definitions.group[name]
        configs = self._state.configs.get((GROUP, group_id), {})
        own = configs.get(name)
        follows = self.release.has(facts.GROUP_CONFIGS_HAVE_SYNONYMS) or name in _FOLLOWING
        synonyms = []
        if own is not None:
            synonyms.append(ConfigSynonym(name, shown_value(definition, own), DYNAMIC_GROUP))
        if definition.synonym is not None and (follows or not (described or configs)):
            broker_config = self.definitions.broker[definition.synonym]
            synonyms += self._broker_sources(broker_config, broker_id)
        elif definition.default is not None:
            synonyms.append(ConfigSynonym(name, definition.default, DEFAULT))
        return replace(_entry(definition, synonyms), read_only=False)

    def _described_group(self, group_id: str, name: str, broker_id: int) -> ConfigEntry:
        """Return one config of a group as DescribeConfigs shows it."""
        entry = self.group(group_id, name, broker_id, described=True)
        if self.release.has(facts.GROUP_CONFIGS_HAVE_SYNONYMS) or not entry.synonyms:
            return entry
        source = entry.source if entry.source == DYNAMIC_GROUP else DEFAULT
        return replace(entry, source=source, synonyms=(ConfigSynonym(name, entry.value, source),))

    def broker(self, broker_id: int, name: str) -> ConfigEntry:
        """Return one broker config. Raises ClusterError for a config that this mock does not
        define."""
        definition = self._known(broker_id, name)
        if definition is None:
            raise ClusterError(f"there is no broker config {name!r}")
        return self._broker_entry(definition, broker_id)

    def value_set(self, broker_id: int, name: str) -> str | None:
        """Return the value of a broker config, None unless it is set: that of the running
        broker, or of the properties file. None for a config that the release lacks."""
        definition = self.definitions.broker.get(name)
        if definition is None:
            return None
        found = next(self._broker_sources(definition, broker_id), None)
        return None if found is None or found.source == DEFAULT else found.value

    def is_set_statically(self, name: str) -> bool:
        """Return whether the properties file of a broker has the config."""
        return name in self._static_names()

    def unknown(self) -> list[str]:
        """Return the static configs of brokers that the mock does not define, sorted."""
        return sorted(self._static_names() - self.definitions.broker.keys())

    def ineffective(self, release: Release) -> list[str]:
        """Return the static configs of brokers that the release has and that change nothing here,
        sorted."""
        from mockbroker.simulation.configs.effects import has_effect

        known = self._static_names() & self.definitions.broker.keys()
        return sorted(name for name in known if not has_effect(name, release))

    def check_static(self) -> None:
        """Raise ClusterError for a static config whose value Kafka refuses at start."""
        state = self._state
        for each in (state.static_configs, *state.own_configs.values()):
            for name, value in each.items():
                problem = config_problem(self.broker_definition(name), value)
                if problem:
                    raise ClusterError(f"broker config {name}: {problem}")

    def _static_names(self) -> set[str]:
        return set(self._state.static_configs).union(*self._state.own_configs.values())

    def controller_value(self, name: str) -> str:
        """Return the controller's own value of a broker config that has a default."""
        definition = self.definitions.broker[name]
        return (
            _first_value(definition, self._broker_sources(definition, self._state.controller_id))
            or ""
        )

    def unclean_election_enabled(self, topic: str) -> bool:
        """Return whether a replica that is not in sync may be elected leader for this topic."""
        return self.topic_value(topic, UNCLEAN_ELECTION) == "true"

    def of_new_topic(
        self, overrides: Mapping[str, str], *, internal_too: bool = False
    ) -> tuple[ConfigEntry, ...]:
        """Return the configs of a topic created with these overrides, as CreateTopics does."""
        broker_id = self._state.controller_id
        if internal_too:
            definitions = self.definitions.topic.values()
            return tuple(self._topic_entry(each, overrides, broker_id) for each in definitions)
        return tuple(self._topic_entries(overrides, broker_id))

    def replication_throttle(self, side: str, tp: TopicPartition, broker_id: int) -> int:
        """Return the throttle (KIP-73) of a broker's replica, in bytes per second.

        ``side`` is "leader" or "follower". A replica is throttled if its topic lists it, at the
        rate of its broker; otherwise the result is ``UNTHROTTLED``.
        """
        listed = self.topic(tp[0], f"{side}.replication.throttled.replicas").value or ""
        replicas = {each.strip() for each in listed.split(",")}
        if not replicas & {"*", f"{tp[1]}:{broker_id}"}:
            return UNTHROTTLED
        rate = self.broker(broker_id, f"{side}.replication.throttled.rate").value
        # ZooKeeper may hold a value that a broker would have refused.
        readable = rate is not None and rate.isascii() and rate.isdigit()
        return min(int(rate), UNTHROTTLED) if rate and readable else UNTHROTTLED

    def broker_definition(self, name: str) -> ConfigDefinition:
        """Return the definition of a broker config.

        Brokers accept configs they do not define, since plugins may read them, and treat their
        values as sensitive.
        """
        return self.definitions.broker.get(name) or ConfigDefinition(
            name, "UNKNOWN", None, called_read_only=True
        )

    def _topic_entries(self, overrides: Mapping[str, str], broker_id: int) -> Iterator[ConfigEntry]:
        """Yield the configs of a topic, without those that are omitted until they are set."""
        for name, definition in self.definitions.topic.items():
            if not definition.only_set or name in overrides:
                yield self._topic_entry(definition, overrides, broker_id)
        for name in sorted(overrides.keys() - self.definitions.topic.keys()):
            own = ConfigSynonym(name, overrides[name], DYNAMIC_TOPIC)
            yield _entry(ConfigDefinition(name, "UNKNOWN", None), [own])

    def _topic_entry(
        self, definition: ConfigDefinition, overrides: Mapping[str, str], broker_id: int
    ) -> ConfigEntry:
        entry = _entry(definition, self._topic_sources(definition, overrides, broker_id))
        if entry.synonyms:
            return entry
        return replace(entry, value=self._topic_default(definition, broker_id))

    def _topic_default(self, definition: ConfigDefinition, broker_id: int) -> str | None:
        """Return what a topic config is if neither the topic nor the broker config that gives its
        default has a value: that of a synonym of the latter, such as ``log.retention.hours``."""
        name = definition.synonym
        names = () if name is None else fallbacks_of(name)
        for each in names:
            broker_config = self.definitions.broker.get(each)
            if broker_config is not None:
                value = self._broker_entry(broker_config, broker_id).value
                if value is not None:
                    return milliseconds_of(each, value)
        return definition.default

    def _topic_sources(
        self, definition: ConfigDefinition, overrides: Mapping[str, str], broker_id: int
    ) -> Iterator[ConfigSynonym]:
        """Yield the possible sources of a topic config's value, by descending precedence."""
        if definition.name in overrides:
            own = shown_value(definition, overrides[definition.name])
            yield ConfigSynonym(definition.name, own, DYNAMIC_TOPIC)
        if definition.synonym is not None:
            broker_config = self.definitions.broker[definition.synonym]
            yield from self._broker_sources(broker_config, broker_id)

    def _broker_sources(
        self, definition: ConfigDefinition, broker_id: int
    ) -> Iterator[ConfigSynonym]:
        """Yield the possible sources of a broker config's value, by descending precedence. Those
        of its synonyms count from the first of its own on."""
        own = definition.name
        found = self._sources_of(synonyms_of(own), broker_id)
        return itertools.dropwhile(lambda source: source.name != own, found)

    def _sources_of(self, names: Sequence[str], broker_id: int) -> Iterator[ConfigSynonym]:
        configs = self._state.configs
        for resource, source in ((str(broker_id), DYNAMIC_BROKER), ("", DYNAMIC_DEFAULT_BROKER)):
            dynamic = configs.get((BROKER, resource))
            if dynamic:
                for name in names:
                    if name in dynamic:
                        yield ConfigSynonym(name, dynamic[name], source)
        for name in names:
            static = self._static_value(broker_id, name)
            if static is not None:
                yield ConfigSynonym(name, static, STATIC_BROKER)
        for name in names:
            definition = self._known(broker_id, name)
            if definition is not None and definition.default is not None:
                yield ConfigSynonym(name, definition.default, DEFAULT)

    def _broker_entry(self, definition: ConfigDefinition, broker_id: int) -> ConfigEntry:
        entry = _entry(definition, self._broker_sources(definition, broker_id))
        names = synonyms_of(definition.name)
        if entry.source == STATIC_BROKER and len(names) > 1:
            first = next(self._sources_of(names, broker_id))
            if first.source != STATIC_BROKER:
                # A dynamic value takes the place of all synonyms in the properties file.
                return replace(entry, value=definition.default)
        return entry

    def _static_value(self, broker_id: int, name: str) -> str | None:
        """Return the value in this broker's properties file."""
        broker = self._state.brokers.get(broker_id)
        if broker is None and broker_id < 0:
            return None
        if name in _IDS:
            return str(broker_id)
        if broker is None:  # a controller apart from brokers has the configs that all share
            return self._state.static_configs.get(name, self.shipped.get(name))
        if name == "broker.rack":
            return broker.rack
        given = self._state.static_config(broker_id, name)
        if given is not None:
            return given
        if name == "listeners":
            return f"PLAINTEXT://{broker.host}:{broker.port}"
        return ",".join(broker.log_dirs) if name == "log.dirs" else self.shipped.get(name)

    # ---- DescribeConfigs ---------------------------------------------------------------------

    def describe(
        self,
        resource_type: int,
        resource_name: str,
        names: Sequence[str] | None = None,
        *,
        receiver: int | None = None,
    ) -> DescribeConfigsResult:
        """Describe one resource; ``names`` None or empty means all configs.

        A broker describes only itself and the cluster-wide default: ``receiver`` is the id of the
        broker that received the request, or None to skip that check.
        """
        try:
            entries = tuple(self._describe(resource_type, resource_name, receiver))
        except Refusal as refusal:
            return DescribeConfigsResult(
                resource_type, resource_name, refusal.code, refusal.message
            )
        if names:
            entries = tuple(entry for entry in entries if entry.name in names)
        return DescribeConfigsResult(resource_type, resource_name, configs=entries)

    def _describe(
        self, resource_type: int, resource_name: str, receiver: int | None
    ) -> Iterator[ConfigEntry]:
        state = self._state
        if resource_type == TOPIC:
            check_topic_name(resource_name, self.release)
            if resource_name not in state.topics and not self.release.has(
                facts.UNKNOWN_TOPICS_DESCRIBED
            ):
                raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            overrides = state.configs.get((TOPIC, resource_name), {})
            seen_from = state.controller_id if receiver is None else receiver
            yield from self._topic_entries(overrides, seen_from)
        elif (
            resource_type == BROKER
            and resource_name == ""
            and self.release.has(facts.BROKERS_ALTERED)
        ):
            # Only the cluster-wide dynamic configs.
            for name, value in sorted(state.configs.get((BROKER, ""), {}).items()):
                synonym = ConfigSynonym(name, value, DYNAMIC_DEFAULT_BROKER)
                yield _entry(self.broker_definition(name), [synonym])
        elif resource_type == BROKER:
            broker_id = self._described_broker(resource_name, receiver)
            extra = {
                name
                for resource in ("", str(broker_id))
                for name in state.configs.get((BROKER, resource), {})
            }
            extra |= state.static_configs.keys() | state.own_configs.get(broker_id, {}).keys()
            known = self._of_broker(broker_id).broker
            shown = {name for name, definition in known.items() if not definition.only_set}
            for name in sorted(extra | shown):
                definition = known.get(name) or self.broker_definition(name)
                yield self._broker_entry(definition, broker_id)
        elif resource_type == GROUP and self.definitions.group:
            if not resource_name:
                raise _invalid("Group name must not be empty")
            seen_from = state.controller_id if receiver is None else receiver
            own = state.configs.get((GROUP, resource_name), {})
            for name, definition in self.definitions.group.items():
                if not definition.only_set or name in own:
                    yield self._described_group(resource_name, name, seen_from)
        elif resource_type == CLIENT_METRICS and self.definitions.client_metrics:
            if not resource_name:
                raise _invalid("Client metrics subscription name must not be empty")
            yield from self._subscription(resource_name)
        else:
            raise _invalid(f"Unsupported resource type: {resource_type}")

    def _described_broker(self, resource_name: str, receiver: int | None) -> int:
        broker_id = integer(resource_name)
        if broker_id is None:
            raise _invalid(f"Broker id must be an integer, but it is: {resource_name}")
        if receiver is not None and broker_id != receiver:
            raise _invalid(
                f"Unexpected broker id, expected {receiver} or empty string, "
                f"but received {broker_as_text(resource_name, self.release)}"
            )
        return broker_id

    def _subscription(self, name: str) -> Iterator[ConfigEntry]:
        """Yield the configs of a subscription, which need not exist. Those with ``only_set`` are of
        releases that show neither types nor defaults."""
        own = self._state.configs.get((CLIENT_METRICS, name), {})
        for definition in self.definitions.client_metrics.values():
            value = own.get(definition.name)
            if definition.only_set:
                if value is not None:
                    synonym = ConfigSynonym(definition.name, value, CLIENT_METRICS_CONFIG)
                    entry = _entry(replace_definition(definition, type="STRING"), [synonym])
                    yield replace(entry, config_type=0, synonyms=())
                continue
            synonyms = []
            if value is not None:
                shown = shown_value(definition, value)
                synonyms.append(ConfigSynonym(definition.name, shown, CLIENT_METRICS_CONFIG))
            yield _entry(definition, synonyms)


def _first_value(definition: ConfigDefinition, sources: Iterator[ConfigSynonym]) -> str | None:
    """Return the value of a config that is not sensitive."""
    found = next(sources, None)
    return definition.default if found is None else found.value


def _entry(definition: ConfigDefinition, sources: Iterable[ConfigSynonym]) -> ConfigEntry:
    sensitive = definition.type in ("PASSWORD", "UNKNOWN")
    shown = tuple(ConfigSynonym(s.name, None, s.source) if sensitive else s for s in sources)
    return ConfigEntry(
        name=definition.name,
        value=shown[0].value if shown else definition.default,
        read_only=definition.called_read_only or not definition.dynamic,
        source=shown[0].source if shown else DEFAULT,
        sensitive=sensitive,
        config_type=config_type_number(definition.type),
        documentation=None,
        synonyms=shown,
    )


def broker_as_text(name: str, release: Release) -> str:
    """Return how a text names the resource of another broker."""
    if not release.has(facts.OTHER_BROKERS_QUOTED):
        return name
    resource = release.value_of(facts.CONFIG_RESOURCES).format(type="BROKER", name=name)
    return f"{resource}.name"


def integer(text: str) -> int | None:
    """Return the broker id that a resource name stands for, or None unless it is a number of 32
    bits."""
    number = int(text) if _INTEGER.fullmatch(text) else _TOO_LARGE
    return number if -_TOO_LARGE <= number < _TOO_LARGE else None


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
