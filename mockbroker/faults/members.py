"""The keyword arguments of ``fault``: the members of ``Fault``, as type checkers see them.

A test holds the names and types to those of ``Fault``. Sequences may also be lists here.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from mockbroker.faults.damaged_records import Corruption
from mockbroker.faults.rule import CloseWith, Disconnect, ErrorAt, Place, Swap, TagLocation

__all__ = ["FaultMembers"]


class FaultMembers(TypedDict, total=False):
    """``Fault`` and ``docs/faults.md`` document them."""

    name: str
    broker: int | None
    listener: str | None
    api: int | str | None
    version: int | str | None
    client_id: str | None
    software: str | None
    software_version: str | None
    topic: str | None
    partition: int | None
    group: str | None
    member: str | None
    transactional_id: str | None
    producer_id: int | None
    connection: int | str | None
    nth: int | str | None
    probability: float | None
    seed: int
    times: int | None
    expires: int | str | None
    observe: bool
    apply: bool | None
    steps_before: list[str] | tuple[str, ...]
    steps_after: list[str] | tuple[str, ...]
    reply: dict[str, Any] | None
    error: int | str | None
    error_message: str | None
    error_at: ErrorAt | None
    throttle: int | str | None
    as_version: int | None
    unknown_tags: list[TagLocation] | tuple[TagLocation, ...]
    unknown_tag: int
    unknown_tag_data: str
    set: dict[str, Any]
    set_length: dict[str, int]
    set_bytes: dict[str, str]
    more: dict[str, int]
    replace_bytes: dict[str, str]
    corrupt: Corruption | None
    correlation_id: int | None
    correlation_off_by: int | None
    trailing: str | None
    length: int | None
    length_off_by: int | None
    truncate: int | None
    raw: str | None
    garbage: int | None
    tls_alert: int | None
    follow_with: str | None
    unsolicited: Place | None
    unsolicited_correlation_id: int | Literal["own"] | None
    never_answer: bool
    delay: int | str | None
    hold_responses: int | None
    hold_for: int | str | None
    swap: Swap | None
    split: int | None
    split_delay: int | str | None
    disconnect: Disconnect | None
    close_with: CloseWith | None
