"""Changing configs: IncrementalAlterConfigs (44), AlterConfigs (33), and the configs of new topics.

Checks that a broker makes before it forwards a request come first. The order and the texts of the
controller's own checks depend on the release (``answers``); ``values`` checks single values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.simulation.configs.answers import ConfigAnswers
from mockbroker.simulation.configs.broker_limits import (
    ON_BROKER_DEFAULTS,
    ON_BROKER_NAMES,
    ON_BROKER_VALUES,
    BrokerConfigCheck,
)
from mockbroker.simulation.configs.client_metrics import CONFIG_ROWS, SubscriptionCheck
from mockbroker.simulation.configs.definitions import ConfigDefinition
from mockbroker.simulation.configs.effective import EffectiveConfigs, integer
from mockbroker.simulation.configs.group_limits import (
    ON_GROUP_CONFIGS,
    ON_GROUP_TEXTS,
    GroupConfigCheck,
)
from mockbroker.simulation.configs.list_edits import LIST_EDITS, ListEdits
from mockbroker.simulation.configs.tiered_limits import ON_TIERED_TOPICS, TieredCheck
from mockbroker.simulation.configs.values import check_value
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import NEWEST, Release
from mockbroker.simulation.releases.rows import Row, apply_first, rows_of_release
from mockbroker.simulation.state.actions import ConfigChanged
from mockbroker.simulation.state.cluster_state import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
)
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.java_maps import hash_order
from mockbroker.simulation.state.results import AlterConfigsResult
from mockbroker.simulation.state.topic_names import check_topic_name, name_problem
from mockbroker.simulation.state.turns import step
from mockbroker.simulation.state.znode_paths import path_problem

__all__ = ["APPEND", "DELETE", "SET", "SUBTRACT", "ConfigChanges", "ConfigOperation"]

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3
_OPERATION_NAMES: Final = {APPEND: "append", SUBTRACT: "subtract"}

_NOT_A_LIST: Final = "Config value {operation} is not allowed for config key: {name}"
_NULL_POINTER: Final = (
    'Cannot invoke "String.split(String)" because the return value of '
    '"java.util.Properties.getProperty(String)" is null'
)
"""The text of Java 15 and later; earlier NullPointerExceptions have none."""

_NO_SUBSCRIPTIONS: Final = (
    "AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS"
)
_NO_TOPIC: Final = "Default topic resources are not allowed."
_TOPIC_CONFIGS: Final = "/config/topics/"
_OF_LISTENER: Final = "listener.name."
_KEPT: Final = frozenset({"advertised.listeners", "listeners"})
"""A running broker of this mock keeps its addresses."""
_TIERED: Final = "remote.storage.enable"
_TIERED_BROKERS: Final = "remote.log.storage.system.enable"
_TIERED_CONFIGS: Final = frozenset(
    {_TIERED, "remote.log.copy.disable", "remote.log.delete.on.disable"}
)
"""The configs without any of which no rule of tiered storage applies."""

ConfigOperation: TypeAlias = tuple[str, int, str | None]
"""(config name, operation: 0 SET, 1 DELETE, 2 APPEND, 3 SUBTRACT; value)"""
ConfigOperations: TypeAlias = Sequence[ConfigOperation]


class ConfigChanges:
    """Changes the configs of one cluster, as controllers of one kind and release do."""

    def __init__(
        self,
        controller: Controller,
        configs: EffectiveConfigs,
        answers: ConfigAnswers,
        release: Release = NEWEST,
    ) -> None:
        self._controller = controller
        self.turns = controller.turns
        self._configs = configs
        self.answers = answers
        self._release = release
        release.follow(self._use_release)

    def _use_release(self, release: Release) -> None:
        self._subscription_rows = rows_of_release(CONFIG_ROWS, release)
        self._explains = self._controller.keeps_znodes and release.has(facts.FAILURES_EXPLAINED)
        self._checks_nulls = release.has(facts.NULLS_CHECKED)
        self._names_unknown = release.has(facts.UNKNOWN_CONFIGS_NAMED)
        self._broker_name_rows = rows_of_release(ON_BROKER_NAMES, release)
        self._broker_default_rows = rows_of_release(ON_BROKER_DEFAULTS, release)
        self._broker_value_rows = rows_of_release(ON_BROKER_VALUES, release)
        self._group_text_rows = rows_of_release(ON_GROUP_TEXTS, release)
        self._tiered_rows = rows_of_release(ON_TIERED_TOPICS, release)
        self._group_rows = rows_of_release(ON_GROUP_CONFIGS, release)

    @step()
    def alter_incrementally(
        self,
        resources: Sequence[tuple[int, str, ConfigOperations]],
        *,
        validate_only: bool = False,
        cause: str = "incremental_alter_configs",
    ) -> tuple[AlterConfigsResult, ...]:
        """Change each resource entirely or not at all. A resource named twice is refused once."""
        repeated = {
            key for key, times in Counter((r[0], r[1]) for r in resources).items() if times > 1
        }
        results: dict[tuple[int, str], AlterConfigsResult] = {}
        for resource_type, name, operations in resources:
            key = (resource_type, name)
            try:
                if key in repeated:
                    raise _invalid("Each resource must appear at most once.")
                after = self._altered(
                    resource_type, name, operations, replaces=cause == "alter_configs"
                )
            except Refusal as refusal:
                results[key] = AlterConfigsResult(
                    resource_type, name, refusal.code, refusal.message
                )
                continue
            results[key] = AlterConfigsResult(resource_type, name)
            if not validate_only:
                before = dict(self._controller.state.configs.get(key, {}))
                self._store(cause, key, before, after)
        return tuple(results.values())

    @step()
    def replace(
        self, resources: Sequence[tuple[int, str, ConfigOperations]], *, validate_only: bool = False
    ) -> tuple[AlterConfigsResult, ...]:
        """As ``alter_incrementally``; configs without an operation are deleted."""
        replacing = [
            (resource_type, name, [*operations, *self._deletions(resource_type, name, operations)])
            for resource_type, name, operations in resources
        ]
        return self.alter_incrementally(
            replacing, validate_only=validate_only, cause="alter_configs"
        )

    def _deletions(
        self, resource_type: int, name: str, operations: ConfigOperations
    ) -> list[tuple[str, int, None]]:
        kept = {config for config, _, _ in operations}
        present = self._controller.state.configs.get((resource_type, name), {})
        return [(config, DELETE, None) for config in present if config not in kept]

    def topic_values(
        self, configs: Sequence[tuple[str, str | None]], *, values_fail: bool = False
    ) -> dict[str, str]:
        """Return the configs of a new topic. Raises Refusal, as CreateTopics does. ``values_fail``:
        a value of a wrong type is an unexpected error."""
        values = {name: value or "" for name, value in configs}
        try:
            self._check_values(TOPIC, values)
        except _BadValue as bad:
            code = ErrorCode.UNKNOWN_SERVER_ERROR if values_fail else bad.code
            raise Refusal(code, bad.message) from None
        self._check_tiered({}, values)
        return values

    def store_new(self, topic: str, values: Mapping[str, str]) -> None:
        """Set the configs of a topic that was just created."""
        self._store("create_topics", (TOPIC, topic), {}, values)

    # ---- one resource ------------------------------------------------------------------------

    def _altered(
        self, resource_type: int, name: str, operations: ConfigOperations, *, replaces: bool
    ) -> dict[str, str]:
        """Return all values of the resource after the operations. ``replaces``: they are those of
        AlterConfigs."""
        if self.answers.forwarded:
            return self._altered_unread(resource_type, name, operations)
        if replaces and self.answers.replaces_plainly:
            operations = list({each[0]: each for each in operations}.values())
            if any(how != DELETE and value is None for _, how, value in operations):
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
            if resource_type == TOPIC:
                if self.answers.names_checked:
                    check_topic_name(name, self._configs.release)
                self._check_exists(name)
        self.check_resource(resource_type, operations, nulls_too=replaces or self._checks_nulls)
        if resource_type == BROKER:
            self._check_broker(name)
            return self._altered_broker(name, operations)
        if resource_type == GROUP:
            return self._altered_group(name, operations)
        if resource_type == CLIENT_METRICS:
            if self._controller.keeps_znodes:
                raise _invalid(_NO_SUBSCRIPTIONS)
            return self._altered_subscription(name, operations)
        if self._controller.keeps_znodes:
            self._check_znode(name, replaces=replaces)
        return self._altered_topic(name, operations)

    def _altered_unread(
        self, resource_type: int, name: str, operations: ConfigOperations
    ) -> dict[str, str]:
        """As ``_altered``, for what a broker has forwarded as it is. Kafka takes values of wrong
        types, too, and its brokers then fail to apply them."""
        if resource_type == BROKER:
            broker_id = integer(name)
            if name and broker_id is None:
                raise _invalid("Illegal non-integral BROKER resource type name.")
            if broker_id is not None and broker_id < 0:
                raise _invalid("Illegal negative broker ID in BROKER resource.")
        elif resource_type == TOPIC:
            if name_problem(name) is not None:
                raise _invalid("Illegal topic name.")
        else:
            known = "BROKER_LOGGER " if resource_type == BROKER_LOGGER else "UNKNOWN."
            raise _invalid(f"Unsupported configuration resource type {known}")
        if self.answers.unchecked and any(
            how == DELETE and value is not None for _, how, value in operations
        ):
            raise _invalid("A DELETE op was given with a non-null value.")
        last = {each[0]: each for each in operations}.values()
        read = [(config, DELETE if value is None else how, value) for config, how, value in last]
        after = self._edited(resource_type, name, read, self.answers.not_a_list)
        touched = _touched(after, read)
        self._check_values(resource_type, touched)
        if resource_type == BROKER:
            for config in touched:
                if not self._configs.broker_definition(config).dynamic:
                    del after[config]
        return after

    def check_resource(
        self, resource_type: int, operations: ConfigOperations, *, nulls_too: bool
    ) -> None:
        """Raise Refusal for what the receiving broker refuses before a controller has it."""
        self.check_operations(operations, nulls_too=nulls_too)
        definitions = self._configs.definitions
        is_known = {
            TOPIC: True,
            BROKER: True,
            GROUP: bool(definitions.group),
            CLIENT_METRICS: bool(definitions.client_metrics),
        }
        if not is_known.get(resource_type):
            raise _invalid(f"Unknown resource type {resource_type}")

    def check_operations(self, operations: ConfigOperations, *, nulls_too: bool = True) -> None:
        """Raise Refusal for a config that comes twice and, with ``nulls_too``, for null values."""
        times = Counter(config for config, _, _ in operations)
        repeated = [config for config, count in times.items() if count > 1]
        if repeated:
            raise _invalid(self.answers.repeated.format(names=",".join(repeated)))
        names_operation = self._release.has(facts.NULLS_NAME_OPERATIONS)
        nulls = [
            f"{_OPERATION_NAMES.get(how, 'set').upper()}:{config}" if names_operation else config
            for config, how, value in operations
            if how != DELETE and value is None
        ]
        if nulls and nulls_too:
            raise _invalid(f"Null value not supported for : {', '.join(nulls)}")

    def _altered_topic(self, name: str, operations: ConfigOperations) -> dict[str, str]:
        """Operations are applied before the topic is looked up."""
        answers = self.answers
        after = self._edited(TOPIC, name, operations, answers.not_a_list)
        if not name and not self._controller.keeps_znodes:
            raise _invalid(_NO_TOPIC)
        if answers.names_checked:
            check_topic_name(name, self._configs.release)
        if not answers.values_first:
            self._check_exists(name)
        try:
            self._check_values(TOPIC, _touched(after, operations))
            self._check_tiered(self._controller.state.configs.get((TOPIC, name), {}), after)
        except _BadValue as bad:
            raise Refusal(
                answers.wrong, answers.bad_value.format(topic=name, problem=bad.message)
            ) from None
        self._check_exists(name)
        return after

    def _check_znode(self, topic: str, *, replaces: bool) -> None:
        """Raise Refusal for a topic without a name and, in IncrementalAlterConfigs, for a name that
        no znode has."""
        if not topic and self._release.has(facts.DEFAULT_TOPICS_NAMED):
            raise _invalid(_NO_TOPIC)
        problem = None if replaces else path_problem(f"{_TOPIC_CONFIGS}{topic}")
        if problem is not None:
            answers = self.answers
            text = answers.bad_value.format(topic=topic, problem=problem)
            raise Refusal(answers.wrong, text)

    def _altered_broker(self, name: str, operations: ConfigOperations) -> dict[str, str]:
        """Brokers check broker configs themselves, so the controller does not matter here: it
        only edits lists once more."""
        after = self._edited(BROKER, name, operations, _NOT_A_LIST)
        checked = after
        if self.answers.lists == "parts":
            checked = self._edited(BROKER, name, operations, _NOT_A_LIST, lists="sets")
        changed = _touched(checked, operations)
        definitions = {config: self._configs.broker_definition(config) for config in changed}
        broker_id = int(name) if name else self._controller.state.controller_id

        def in_use(config: str) -> str | None:
            return self._configs.broker(broker_id, config).value

        try:
            self._check_broker_configs(name, changed, definitions, in_use)
        except Refusal as refusal:
            if refusal.code is not ErrorCode.INVALID_REQUEST or not refusal.message:
                raise
            text = self.answers.bad_broker_value.format(broker=name, problem=refusal.message)
            raise _invalid(text) from None
        return after

    def _check_broker_configs(
        self,
        name: str,
        changed: Mapping[str, str],
        definitions: Mapping[str, ConfigDefinition],
        in_use: Callable[[str], str | None],
    ) -> None:
        check = BrokerConfigCheck(
            changed,
            not name,
            [config for config, definition in definitions.items() if not definition.dynamic],
            [
                config
                for config, definition in definitions.items()
                if definition.dynamic and config in _KEPT
            ],
            in_use,
            self.answers.names,
            unknown=[
                config
                for config, definition in definitions.items()
                if definition.type == "UNKNOWN" and not config.startswith(_OF_LISTENER)
            ],
        )
        _check_broker_rows(self._broker_name_rows, check)
        try:
            self._check_values(BROKER, changed)
        except _BadValue as bad:
            # Kafka keeps this error code for compatibility (KAFKA-13609).
            raise _invalid(str(bad.message)) from None
        _check_broker_rows(self._broker_default_rows, check)
        check.changed = {each: changed[each] for each in changed if each not in check.unknown}
        _check_broker_rows(self._broker_value_rows, check)

    def _altered_group(self, name: str, operations: ConfigOperations) -> dict[str, str]:
        """A group has configs whether or not it exists."""
        answers = self.answers
        after = self._edited(GROUP, name, operations, answers.not_a_list)
        if not name:
            raise _invalid("Default group resources are not allowed.")
        for config in after:
            if config not in self._configs.definitions.group:
                raise Refusal(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {config}")
        self._check_group(name, after, self._group_text_rows)
        try:
            self._check_values(GROUP, after)
        except _BadValue as bad:
            raise Refusal(ErrorCode.INVALID_CONFIG, bad.message) from None
        self._check_group(name, after, self._group_rows)
        return after

    def _altered_subscription(self, name: str, operations: ConfigOperations) -> dict[str, str]:
        """Kafka's controllers do not know which configs of a subscription are lists, and refuse to
        append to any."""
        after = self._edited(CLIENT_METRICS, name, operations, self.answers.not_a_list)
        check = SubscriptionCheck(name, after, self._configs.definitions.client_metrics)
        apply_first(self._subscription_rows, check, check)
        if check.code:
            raise Refusal(check.code, check.text)
        return after

    def _check_group(
        self,
        name: str,
        after: Mapping[str, str],
        rows: Sequence[Row[GroupConfigCheck, GroupConfigCheck]],
    ) -> None:
        """Raise Refusal for the first row that applies."""
        configs, broker_id = self._configs, self._controller.state.controller_id

        def in_use(config: str) -> int:
            return int(after.get(config) or configs.group(name, config, broker_id).value or 0)

        check = GroupConfigCheck(after, configs.controller_value, in_use)
        apply_first(rows, check, check)
        if check.code:
            raise Refusal(check.code, check.text)

    def _check_exists(self, name: str) -> None:
        if name not in self._controller.state.topics:
            code, text = self.answers.unknown_topic
            raise Refusal(code, text.format(name=name))

    def _check_broker(self, name: str) -> None:
        broker_id = integer(name)
        if name and broker_id is None:
            raise _invalid("Unable to parse broker name as a base 10 number.")
        if broker_id is not None and broker_id < 0:
            raise _invalid("Invalid negative broker ID.")
        if broker_id is not None and not self._controller.state.is_registered(broker_id):
            raise Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {broker_id} found.")

    def _edited(
        self,
        resource_type: int,
        name: str,
        operations: ConfigOperations,
        not_a_list: str,
        lists: ListEdits | None = None,
    ) -> dict[str, str]:
        """Return all values after the operations, unchecked. Kafka fails as it sets null, unless it
        looks for nulls first; AlterConfigs always does."""
        answers = self.answers
        after = dict(self._controller.state.configs.get((resource_type, name), {}))
        for config, how, value in operations:
            if how == DELETE:
                after.pop(config, None)
            elif how == SET and value is None and not (answers.forwarded or self._checks_nulls):
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
            elif how == SET:
                after[config] = value or ""
            elif how in _OPERATION_NAMES:
                definition = self._definition(resource_type, config)
                if not answers.forwarded and self._fails_unknown(resource_type, config):
                    if self._names_unknown:
                        text = f"Unknown config name: {config}"
                        raise Refusal(ErrorCode.INVALID_CONFIG, text)
                    raise self._failure(f"key not found: {config}")
                if definition.type != "LIST":
                    verb = _OPERATION_NAMES[how]
                    text = not_a_list.format(operation=verb, OPERATION=verb.upper(), name=config)
                    raise Refusal(answers.wrong, text)
                present = after.get(config)
                if present is None and answers.null_lists:
                    raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, _NULL_POINTER)
                present = definition.default or "" if present is None else present
                edited = LIST_EDITS[lists or answers.lists]
                after[config] = edited(present, value or "", appends=how == APPEND)
            elif resource_type == BROKER and not (answers.replaces_plainly or answers.forwarded):
                raise _invalid(f"Unknown operations type {how}")
            else:
                # Kafka fails because the operation is null.
                raise self._failure("null")
        return after

    def _fails_unknown(self, resource_type: int, config: str) -> bool:
        """Whether APPEND and SUBTRACT need the definition of a config that there is not."""
        definitions = self._configs.definitions
        if resource_type == TOPIC and self.answers.replaces_plainly:
            return config not in definitions.topic
        return resource_type == BROKER and config not in definitions.broker

    def _failure(self, exception: str) -> Refusal:
        """Return the refusal for an exception that Kafka does not expect, with this text."""
        text = exception if self._explains else None
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, text)

    def _check_values(self, resource_type: int, values: Mapping[str, str]) -> None:
        if resource_type == TOPIC and not self.answers.unchecked:
            for name in hash_order(values):
                if name not in self._configs.definitions.topic:
                    text = self._release.value_of(facts.UNKNOWN_CONFIG_OF_TOPIC)
                    raise Refusal(ErrorCode.INVALID_CONFIG, text.format(name=name))
        for name, value in values.items():
            try:
                check_value(self._definition(resource_type, name), value)
            except Refusal as refusal:
                raise _BadValue(refusal.code, refusal.message) from None

    def _check_tiered(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Check the tiered storage of a topic whose own configs were ``before``."""
        if not self._tiered_rows or not {**before, **after}.keys() & _TIERED_CONFIGS:
            return
        check = TieredCheck(
            {each.name: each.value or "" for each in self._configs.of_new_topic(after)},
            was_enabled=before.get(_TIERED, "").strip().lower() == "true",
            brokers_enabled=self._configs.controller_value(_TIERED_BROKERS) == "true",
            in_zookeeper=self._controller.keeps_znodes,
        )
        apply_first(self._tiered_rows, check, check)
        if check.text:
            refusal = _BadValue if check.names_resource else Refusal
            raise refusal(ErrorCode.INVALID_CONFIG, check.text)

    def _definition(self, resource_type: int, name: str) -> ConfigDefinition:
        if resource_type == CLIENT_METRICS:
            return ConfigDefinition(name, "UNKNOWN", None)
        if resource_type == TOPIC:
            return self._configs.definitions.topic.get(name) or ConfigDefinition(
                name, "UNKNOWN", None
            )
        if resource_type == GROUP:
            return self._configs.definitions.group.get(name) or ConfigDefinition(
                name, "UNKNOWN", None
            )
        return self._configs.broker_definition(name)

    def _store(
        self, cause: str, key: tuple[int, str], before: Mapping[str, str], after: Mapping[str, str]
    ) -> None:
        for name in {**before, **after}:
            if before.get(name) != after.get(name):
                change = ConfigChanged(*key, name, before.get(name), after.get(name))
                self._controller.record(cause, change)


def _check_broker_rows(
    rows: Sequence[Row[BrokerConfigCheck, BrokerConfigCheck]], check: BrokerConfigCheck
) -> None:
    """Raise Refusal for the first row that applies."""
    if apply_first(rows, check, check):
        raise _invalid(check.text)


class _BadValue(Refusal):
    """The value of a known config is invalid."""


def _touched(after: Mapping[str, str], operations: ConfigOperations) -> dict[str, str]:
    return {name: after[name] for name, how, _ in operations if how != DELETE}


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
