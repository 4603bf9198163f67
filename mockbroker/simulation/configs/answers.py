"""How controllers answer IncrementalAlterConfigs (44): which checks they make, in which order, and
their texts. ``changes`` applies it.

The answers of controllers in ZooKeeper's time were compared with ``AdminManager``,
``ZkAdminManager`` and ``ConfigAdminManager`` of 2.4.1, 2.5.1, 2.6.3, 2.7.2, 2.8.2 and the last
releases of 3.0 to 3.9.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.configs.list_edits import ListEdits
from mockbroker.simulation.releases import facts, fixes
from mockbroker.simulation.releases.release import Release

__all__ = ["ConfigAnswers", "config_answers"]


_UNKNOWN_TOPIC: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic '{name}' does not exist.")
_UNKNOWN_PATH: Final = (ErrorCode.UNKNOWN_SERVER_ERROR, 'Topic "{name}" does not exist.')


class ConfigAnswers(msgspec.Struct, frozen=True):
    """How a controller answers IncrementalAlterConfigs for topics, and brokers in ``names``.

    ``names_checked``: an invalid topic name has an error of its own; otherwise the topic does not
    exist. ``values_first``: values are checked before the topic has to exist. ``lists`` says how
    APPEND and SUBTRACT edit a list. ``null_lists``: for a list without a value of its own both fail
    with a null pointer; otherwise they start from its default. ``replaces_plainly``: in
    AlterConfigs a null value is an unexpected error, the last of equal configs counts, and no topic
    has an empty name. ``forwarded``: the broker forwards the request as it is, and the controller
    asks neither whether a topic exists nor whether a broker's config is dynamic. ``unchecked``: nor
    which configs a topic has.

    Texts are formatted with ``bad_value``: {topic} and {problem}; ``not_a_list``: {operation} or
    {OPERATION}, and {name}; ``unknown_topic``: {name};
    ``repeated`` and ``names``: {names}; ``bad_broker_value``: {broker} and {problem}. ``wrong`` is
    the error code of ``bad_value`` and ``not_a_list``.
    """

    names_checked: bool
    values_first: bool
    bad_value: str
    not_a_list: str
    names: str
    wrong: ErrorCode = ErrorCode.INVALID_CONFIG
    unknown_topic: tuple[ErrorCode, str] = _UNKNOWN_TOPIC
    repeated: str = "Error due to duplicate config keys"
    bad_broker_value: str = "{problem}"
    replaces_plainly: bool = False
    lists: ListEdits = "parts"
    null_lists: bool = False
    forwarded: bool = False
    unchecked: bool = False


def config_answers(release: Release, *, kraft: bool) -> ConfigAnswers:
    """How the controllers of a release answer."""
    names = release.value_of(facts.SET_OF_CONFIGS)
    if kraft:
        return ConfigAnswers(
            names_checked=True,
            values_first=True,
            bad_value="{problem}",
            not_a_list="Can't {OPERATION} to key {name} because its type is not LIST.",
            names=names,
            forwarded=release.has(facts.CONFIGS_FORWARDED),
            unchecked=release.has(facts.CONFIGS_UNCHECKED),
        )
    repeated = " : {names}" if release.has(facts.REPEATED_CONFIGS_NAMED) else ""
    is_older = release.has(facts.CONFIG_RESOURCES_CHECKED_SINGLY)
    resource = f"Invalid config value for resource {release.value_of(facts.CONFIG_RESOURCES)}: "
    of_topic = resource.format(type="TOPIC", name="{topic}").replace("'}", "'}}")
    of_broker = resource.format(type="BROKER", name="{broker}").replace("'}", "'}}")
    edits_sets = release.has(facts.LIST_CONFIGS_ARE_SETS)
    return ConfigAnswers(
        names_checked=not release.has(fixes.KAFKA_10033),
        values_first=False,
        bad_value=f"{of_topic}{{problem}}",
        not_a_list="Config value {operation} is not allowed for config key: {name}",
        names=names,
        wrong=ErrorCode.INVALID_CONFIG
        if release.has(fixes.KAFKA_13899)
        else ErrorCode.INVALID_REQUEST,
        unknown_topic=_UNKNOWN_TOPIC if release.has(fixes.KAFKA_10033) else _UNKNOWN_PATH,
        repeated=f"Error due to duplicate config keys{repeated}",
        bad_broker_value=f"{of_broker}{{problem}}" if is_older else "{problem}",
        replaces_plainly=is_older,
        lists="sets" if edits_sets else "texts",
        null_lists=not release.has(fixes.KAFKA_9644),
    )
