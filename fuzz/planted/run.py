"""Measure the number of cases and seconds until each planted bug is found.

The frames are those of ``mockbroker fuzz diff``, with the sample as one of its decoders. The first
unexpected disagreement that involves the sample counts. The client runs beside a copy without the
bug, so that its results are compared too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import kproto
from fuzz.planted import client, sample_decoder
from kspec.clientfuzz.bases import Base, bases
from kspec.clientfuzz.decoders.calls import base_of
from kspec.clientfuzz.decoders.client_decoder import ClientDecoder
from kspec.clientfuzz.decoders.codecs import Decoder, codecs
from kspec.clientfuzz.decoders.program_decoder import ProgramDecoder
from kspec.clientfuzz.decoders.run import play
from kspec.runner.install import Launch

__all__ = ["BUGS", "NEVER", "Hunt", "Sample", "hunt", "hunts"]

Sample: TypeAlias = Literal["client", "decoder"]

BUGS: Final[Mapping[Sample, Mapping[int, str]]] = {
    "client": client.BUGS,
    "decoder": sample_decoder.BUGS,
}
NEVER: Final = 10**9
"""A number of cases that no run reaches."""

API_KEY: Final = 46
VERSION: Final = 0
HANG_SECONDS: Final = 4.0
"""A sample answers in milliseconds; its own timeouts take half a second."""
_HERE: Final = Path(__file__).resolve().parent


class Hunt(NamedTuple):
    """``how`` is the disagreement that revealed the bug, empty if none did within the limits."""

    sample: Sample
    bug: int
    cases: int
    seconds: float
    how: str

    @property
    def found(self) -> bool:
        return bool(self.how)


def hunts(sample: Sample, *, seed: int, cases: int, seconds: float) -> Iterator[Hunt]:
    """Hunt each bug in turn, each with its own limits."""
    for bug in BUGS[sample]:
        yield hunt(sample, bug, seed=seed, cases=cases, seconds=seconds)


def hunt(sample: Sample, bug: int, *, seed: int, cases: int, seconds: float) -> Hunt:
    """Bug 0 means no bug, so that any finding is an error of the fuzzer."""
    dialect = kproto.dialect("kafka")
    started = time.monotonic()
    decoders, chosen = _against(sample, bug, dialect)
    try:
        for first in range(cases):
            outcome = play(dialect, chosen, decoders, seed=seed, cases=1, first=first)
            spent = time.monotonic() - started
            if outcome.findings:
                return Hunt(sample, bug, first + 1, spent, str(outcome.findings[0].cause))
            if spent > seconds:
                return Hunt(sample, bug, first + 1, spent, "")
    finally:
        for decoder in decoders:
            decoder.close()
    return Hunt(sample, bug, cases, time.monotonic() - started, "")


def _against(
    sample: Sample, bug: int, dialect: kproto.Dialect
) -> tuple[Sequence[Decoder], Sequence[Base]]:
    ours = codecs(dialect)[0]
    if sample == "decoder":
        command = (sys.executable, str(_HERE / "decoder.py"), "--bug", str(bug))
        program = ProgramDecoder("sample", command, dialect, seconds=HANG_SECONDS)
        return [ours, program], bases(dialect, API_KEY, "response", VERSION)
    return [ours, _client("right", 0), _client("sample", bug)], [base_of(dialect, API_KEY, VERSION)]


def _client(label: str, bug: int) -> ClientDecoder:
    command = (sys.executable, str(_HERE / "client.py"), "--bug", str(bug))
    return ClientDecoder(label, Launch(command, None), API_KEY, VERSION, seconds=HANG_SECONDS)
