"""Documented differences between the mock and Kafka: the rows of ``expected.yaml``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

import kproto
from kproto.errors import KprotoError
from kproto.framing import FrameSplitter
from kspec.clientfuzz.expected import ExpectedDifference, load_expected
from kspec.clientfuzz.frame_cases import Case

__all__ = ["BrokerDifference", "expected_differences", "explain"]


class BrokerDifference(ExpectedDifference, frozen=True, kw_only=True):
    """A row about brokers.

    ``mock`` and ``kafka`` list the outcomes that the row matches. ``we_say`` is a regular
    expression for our decoder's error, empty if it accepts the request. An empty ``apis`` matches
    every API.
    """

    mock: list[str]
    kafka: list[str]
    we_say: str = ""
    apis: list[int] = msgspec.field(default_factory=list)


@cache
def expected_differences() -> tuple[BrokerDifference, ...]:
    return load_expected(Path(__file__).parent, BrokerDifference)


def explain(case: Case, outcomes: Sequence[str]) -> BrokerDifference | None:
    """Return the first row that matches the outcomes of two brokers, the mock's first."""
    if len(outcomes) != 2:
        return None
    message = _decode_error(case)
    for row in expected_differences():
        if (
            outcomes[0] in row.mock
            and outcomes[1] in row.kafka
            and (not row.apis or case.base.api_key in row.apis)
            and re.search(row.we_say, message)
        ):
            return row
    return None


def _decode_error(case: Case) -> str:
    splitter = FrameSplitter(keep_size=True)
    splitter.feed(case.mutation.frame)
    try:
        frame = splitter.next_frame()
        if frame is not None:
            kproto.decode_request(frame)
    except KprotoError as error:
        return str(error)
    return ""
