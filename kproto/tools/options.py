"""Which options of a tool may be combined. Pure: takes names and raises ToolUsageError in Kafka's
words.

Options are named without dashes (``reassignment-json-file``) and passed in the order of the command
line, since the error names the first one that is out of place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from kproto.tools.errors import ToolUsageError

__all__ = [
    "check_draft_reassign",
    "check_election",
    "check_preferred_election",
    "check_reassign",
    "check_topics",
    "check_zookeeper_reassign",
]

_CONFIG: Final = "command-config"
_SERVER: Final = "bootstrap-server"
_CONTROLLER: Final = "bootstrap-controller"
_PLAN: Final = "reassignment-json-file"

_REASSIGN_ACTIONS: Final = ("generate", "execute", "verify", "cancel", "list")
_REASSIGN_REQUIRED: Final = {
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": (_PLAN,),
    "verify": (_PLAN,),
    "cancel": (_PLAN,),
    "list": (),
}
_REASSIGN_PERMITTED: Final = {
    "generate": (_SERVER, "disable-rack-aware"),
    "execute": (
        _SERVER,
        "additional",
        "throttle",
        "replica-alter-log-dirs-throttle",
        "timeout",
        "disallow-replication-factor-change",
    ),
    "verify": (_SERVER, "preserve-throttles"),
    "cancel": (_SERVER, _CONTROLLER, "preserve-throttles", "timeout"),
    "list": (_SERVER, _CONTROLLER),
}


_DRAFT_PERMITTED: Final = {
    "generate": ("disable-rack-aware",),
    "execute": ("throttle",),
    "verify": (),
    "list": (),
}
"""Common to KIP-455's drafts; see ``check_draft_reassign``."""


def check_draft_reassign(draft: str, given: Sequence[str]) -> str:
    """As ``check_reassign``, for "kip-455-old", where ``--execute`` accepts ``--incremental``, or
    "kip-455-new", which has the action ``--cancel-all``."""
    permitted: dict[str, tuple[str, ...]] = dict(_DRAFT_PERMITTED)
    if draft == "kip-455-old":
        permitted["execute"] = ("throttle", "incremental")
    else:
        permitted["cancel-all"] = ()
    action = _one_action(given, tuple(permitted))
    _require(given, _SERVER)
    _check_fitting(given, action, (_SERVER, *permitted[action]))
    return action


_ZOOKEEPER: Final = "zookeeper"
_ZOOKEEPER_PERMITTED: Final = {
    "generate": ("disable-rack-aware",),
    "execute": ("throttle",),
    "verify": (),
    "cancel": (),
}
_ZOOKEEPER_MORE: Final = {
    "kip-236-new": {"generate-queue": "generate", "execute-queue": "execute",
                    "verify-queue": "verify"},
    "kip-236-old": {"generate-extra": "generate", "execute-extra": "execute",
                    "verify-extra": "verify", "remove-cancel": "cancel"},
}  # fmt: skip
"""Actions that each draft of KIP-236 adds, and the action whose options they accept."""
_ZOOKEEPER_LACKS: Final = {
    "generate": "both --topics-to-move-json-file and --broker-list options",
    "execute": f"--{_PLAN} that was output during the --generate option",
    "verify": f"--{_PLAN} that was used during the --execute option",
}
"""Kafka 2.4's text."""


def check_zookeeper_reassign(draft: str, given: Sequence[str]) -> str:
    """As ``check_reassign``, for the drafts of KIP-236, which only use ``--zookeeper``."""
    likes = {action: action for action in _ZOOKEEPER_PERMITTED} | _ZOOKEEPER_MORE[draft]
    action = _one_action(given, tuple(likes))
    like = likes[action]
    _require(given, _ZOOKEEPER)
    required = () if like == "cancel" else _REASSIGN_REQUIRED[like]
    if not set(required) <= set(given):
        raise ToolUsageError(
            f"If --{action} option is used, command must include {_ZOOKEEPER_LACKS[like]}"
        )
    fitting = {action, _ZOOKEEPER, *required, *_ZOOKEEPER_PERMITTED[like]}
    _refuse_others(given, action, fitting)
    return action


def check_preferred_election(given: Sequence[str]) -> None:
    """Check KIP-183's options: either ``--zookeeper`` or ``--bootstrap-server``."""
    ways = [option for option in (_ZOOKEEPER, _SERVER) if option in given]
    if len(ways) == 2:
        raise ToolUsageError("Only one of --zookeeper and --bootstrap-server can be used at a time")
    if not ways:
        raise ToolUsageError("Please specify either --bootstrap-server or --zookeeper")
    if _ZOOKEEPER in given and _CONFIG in given:
        raise ToolUsageError('Option "[command-config]" can\'t be used with option "[zookeeper]"')


def check_reassign(given: Sequence[str]) -> str:
    """Return the action after checking that all other options are valid for it."""
    action = _one_action(given, _REASSIGN_ACTIONS)
    if _SERVER in given and _CONTROLLER in given:
        raise ToolUsageError(
            "Please don't specify both --bootstrap-server and --bootstrap-controller"
        )
    if _SERVER not in given and _CONTROLLER not in given:
        raise ToolUsageError("Please specify either --bootstrap-server or --bootstrap-controller")
    _check_fitting(given, action, _REASSIGN_PERMITTED[action])
    return action


def _check_fitting(given: Sequence[str], action: str, permitted: Sequence[str]) -> None:
    required = _REASSIGN_REQUIRED.get(action, ())
    _require(given, *required)
    _refuse_others(given, action, {action, _CONFIG, *required, *permitted})


def _one_action(given: Sequence[str], actions: Sequence[str]) -> str:
    found = [action for action in actions if action in given]
    if len(found) != 1:
        raise ToolUsageError(
            "Command must include exactly one action: "
            + ", ".join(f"--{action}" for action in actions)
        )
    return found[0]


def _refuse_others(given: Sequence[str], action: str, fitting: Collection[str]) -> None:
    for option in given:
        if option not in fitting:
            raise ToolUsageError(f'Option "[{option}]" can\'t be used with action "[{action}]"')


def check_election(given: Sequence[str]) -> None:
    """Check options as Kafka's ``LeaderElectionCommandOptions.validate`` does."""
    missing = [option for option in (_SERVER, "election-type") if option not in given]
    if missing:
        raise ToolUsageError(f"Missing required option(s): {', '.join(missing)}")
    _exclude(given, "admin.config", _CONFIG)
    whom = ("topic", "all-topic-partitions", "path-to-json-file")
    if sum(option in given for option in whom) != 1:
        raise ToolUsageError(
            f"One and only one of the following options is required: {', '.join(whom)}"
        )
    if "topic" in given and "partition" not in given:
        raise ToolUsageError("Missing required option(s): partition")
    if "partition" in given and "topic" not in given:
        raise ToolUsageError("Option partition is only allowed if topic is used")


_TOPIC_ACTIONS: Final = ("list", "describe", "create", "alter", "delete")
_REPORTS: Final = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)
_OVERRIDES: Final = "topics-with-overrides"
_TOPIC_GOES_WITH: Final = {
    "config": ("create", "alter"),
    "partitions": ("create", "alter"),
    "replication-factor": ("create",),
    "replica-assignment": ("create", "alter"),
    **dict.fromkeys((*_REPORTS, _OVERRIDES), ("describe",)),
    "if-exists": ("alter", "delete", "describe"),
    "if-not-exists": ("create",),
    "exclude-internal": ("list", "describe"),
}


def check_topics(given: Sequence[str]) -> str:
    """Return the action after checking that all other options are valid for it."""
    actions = [action for action in _TOPIC_ACTIONS if action in given]
    if len(actions) != 1:
        raise ToolUsageError(
            "Command must include exactly one action: "
            "--list, --describe, --create, --alter or --delete"
        )
    (action,) = actions
    if _SERVER not in given:
        raise ToolUsageError("--bootstrap-server must be specified")
    if action == "describe" and "if-exists" in given and not {"topic", "topic-id"} & {*given}:
        raise ToolUsageError("--topic or --topic-id is required to describe a topic")
    if action not in ("list", "describe"):
        _require(given, "topic")
    if action == "alter":
        if "config" in given:
            raise ToolUsageError(
                'Option combination "[[bootstrap-server], [config]]" can\'t be used with option '
                '"[alter]" (To alter topic configurations, the kafka-configs tool can be used.)'
            )
        _require(given, "partitions")
    for option, fitting in _TOPIC_GOES_WITH.items():
        if action not in fitting:
            _exclude(given, option, action)
    if action == "create":
        _exclude(given, "replica-assignment", "partitions", "replication-factor")
    for report in _REPORTS:
        _exclude(given, report, _OVERRIDES)
    return action


def _require(given: Sequence[str], *options: str) -> None:
    for option in options:
        if option not in given:
            raise ToolUsageError(f'Missing required argument "[{option}]"')


def _exclude(given: Sequence[str], used: str, *others: str) -> None:
    for other in others:
        if used in given and other in given:
            raise ToolUsageError(f'Option "[{used}]" can\'t be used with option "[{other}]"')
