"""Where the mock is known to do another thing than Kafka to a damaged request, and why:
``expected.yaml`` beside this file. Whatever no row matches is a finding."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

import kproto
from kproto.errors import KprotoError
from kproto.framing import FrameSplitter
from kspec.clientfuzz.frame_cases import Case

__all__ = ["Expected", "expected_differences", "explain"]

FILE = Path(__file__).with_name("expected.yaml")


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``mock`` and ``kafka`` are what became of the request; ``we_say`` is searched for in what our
    decoder says of it, empty where it takes it; ``apis`` empty for all."""

    id: str
    mock: list[str]
    kafka: list[str]
    reason: str
    we_say: str = ""
    apis: list[int] = []


@cache
def expected_differences() -> tuple[Expected, ...]:
    import yaml  # the extra `kspec` has it

    return tuple(msgspec.convert(yaml.safe_load(FILE.read_text("utf-8")) or [], list[Expected]))


def explain(case: Case, became: Sequence[str]) -> Expected | None:
    """The first row that fits, of two brokers of which the first is the mock."""
    if len(became) != 2:
        return None
    said = _our_word(case)
    for row in expected_differences():
        if (
            became[0] in row.mock
            and became[1] in row.kafka
            and (not row.apis or case.base.api_key in row.apis)
            and re.search(row.we_say, said)
        ):
            return row
    return None


def _our_word(case: Case) -> str:
    splitter = FrameSplitter(keep_size=True)
    splitter.feed(case.mutation.frame)
    try:
        frame = splitter.next_frame()
        if frame is not None:
            kproto.decode_request(frame)
    except KprotoError as error:
        return str(error)
    return ""
