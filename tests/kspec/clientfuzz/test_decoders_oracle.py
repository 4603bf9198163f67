"""The differential with Kafka's own classes: what they and we disagree on is listed, all of it, and
nothing is listed that does not happen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import kproto
from kproto.oracle.oracle import RELEASES
from kspec.clientfuzz.bases import bases_of
from kspec.clientfuzz.decoders.codecs import codecs
from kspec.clientfuzz.decoders.expected import expected_differences
from kspec.clientfuzz.decoders.kafka_classes import KafkaClasses
from kspec.clientfuzz.decoders.run import DecoderComparison, play
from kspec.clientfuzz.frame_cases import Sample
from tests.support.toolchain import require

pytestmark = [pytest.mark.java, pytest.mark.oracle, pytest.mark.slow]

KAFKA = kproto.dialect("kafka")
SEED = 2026
CASES = 3000


@pytest.fixture(scope="module")
def classes() -> Iterator[list[KafkaClasses]]:
    require("java", "maven")
    started: list[KafkaClasses] = []
    try:
        for release in RELEASES:
            started.append(KafkaClasses(release, KAFKA))
        yield started
    finally:
        for each in started:
            each.close()


@pytest.fixture(scope="module")
def outcomes(classes: list[KafkaClasses]) -> list[DecoderComparison]:
    decoders = [codecs(KAFKA)[0], *classes]
    return [
        play(KAFKA, bases_of(KAFKA, [], "request"), decoders, seed=SEED, cases=CASES),
        play(KAFKA, bases_of(KAFKA, [], "response"), decoders, seed=SEED, cases=CASES),
        # A nullable struct, and tagged fields of the schema's own, are rare among all messages.
        play(KAFKA, bases_of(KAFKA, [75], "request"), decoders, seed=SEED, cases=400),
        play(KAFKA, bases_of(KAFKA, [18], "response"), decoders, seed=SEED, cases=800),
    ]


def test_every_disagreement_is_listed(outcomes: list[DecoderComparison]) -> None:
    for outcome in outcomes:
        assert [(str(each.cause), each.case.number) for each in outcome.findings] == []


def test_every_listed_disagreement_happens(outcomes: list[DecoderComparison]) -> None:
    """Those of Kafka's classes; what clients do depends on the clients."""
    listed = {row.id for row in expected_differences() if not row.who[0].startswith("client:")}
    assert listed - {name for outcome in outcomes for name in outcome.rows} == set()


def test_a_program_that_ends_is_started_again(classes: list[KafkaClasses]) -> None:
    """A JVM that is killed from outside in place of one that bytes brought down."""
    kafka = classes[0]
    frame = bases_of(KAFKA, [46], "response")[0].frame
    sample = Sample(46, 0, "response", frame)
    before = kafka.judge([sample])
    kafka._oracle.kill()
    assert kafka.judge([sample]) == before
    assert before[0].outcome == "accepted"
