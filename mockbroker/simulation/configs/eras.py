"""How releases differ in IncrementalAlterConfigs (44): which checks they make, in which order, and
their texts. Data only; ``changes`` applies it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from kproto.error_codes import ErrorCode

__all__ = ["ConfigEra"]


class ConfigEra(msgspec.Struct, frozen=True):
    """How a controller answers IncrementalAlterConfigs for topics, and for brokers in ``static``.

    ``names_checked``: an invalid topic name has an error of its own; otherwise the topic does not
    exist. ``values_first``: values are checked before the topic has to exist. ``lists`` says
    whether APPEND and SUBTRACT treat a list as a set or concatenate and cut text. ``null_lists``:
    for a list without a value of its own both fail with a null pointer; otherwise they start from
    its default.

    Texts are formatted with ``bad_value``: {topic} and {problem}; ``not_a_list``: {operation} or
    {OPERATION}, and {name}; ``unknown_topic``: {name}; ``repeated`` and ``static``: {names}.
    ``wrong`` is the error code of ``bad_value`` and ``not_a_list``.
    """

    names_checked: bool
    values_first: bool
    bad_value: str
    not_a_list: str
    static: str
    wrong: ErrorCode = ErrorCode.INVALID_CONFIG
    unknown_topic: tuple[ErrorCode, str] = (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "The topic '{name}' does not exist.",
    )
    repeated: str = "Error due to duplicate config keys"
    lists: Literal["sets", "texts"] = "sets"
    null_lists: bool = False
