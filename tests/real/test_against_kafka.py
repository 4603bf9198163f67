"""The mock answers as a real cluster of the same release does, field by field.

What may differ: fields that are masked or without order (``answers``), and ``known_differences``.
Sessions are scripted. Programs are drawn by the run's seed: some here, many in
``make fidelity-programs``.
"""

from __future__ import annotations

from typing import TypeAlias

import pytest

from kproto.schema.versions import Versions
from tests.real.compare import Comparison, Difference, play
from tests.real.kafka import LAGGARD, RealKafka
from tests.real.known_differences import KNOWN, Known, sift
from tests.real.programs.batch import Arena, Played
from tests.real.programs.generator import programs
from tests.real.programs.model import Setting
from tests.real.sessions import API_KEYS, sessions
from tests.real.targets import MockTarget, RealTarget
from tests.support import seeds
from tests.support.full import either

SESSIONS_AT_LEAST = 200
FIELDS_AT_LEAST = 25_000
"""A comparison that has lost its way through the answers would find nothing different either."""

PROGRAMS = either(48, 8)
STEPS_AT_LEAST = 4

Counts: TypeAlias = dict[str, Comparison | Played]

Shows = pytest.mark.requirement


@pytest.mark.slow
@pytest.mark.java
@Shows("K183-08", "K183-09", "K183-25", "K455-23", "A-29", "A-45", "A-47", "A-48", "A-53")
async def test_the_newest_kafka(
    kraft_kafka: RealKafka,
    comparisons: Counts,
    request: pytest.FixtureRequest,
) -> None:
    await _check(kraft_kafka, "kafka-4.4", comparisons, request)


@pytest.mark.slow
@pytest.mark.java
@Shows("K183-08", "K183-09", "K183-25", "K455-23", "A-29", "A-45", "A-47", "A-48", "A-53")
async def test_the_last_kafka_of_3_x_without_a_zookeeper(
    older_kraft_kafka: RealKafka,
    comparisons: Counts,
    request: pytest.FixtureRequest,
) -> None:
    await _check(older_kraft_kafka, "kafka-3.9", comparisons, request)


@pytest.mark.slow
@pytest.mark.java
@Shows("K183-06", "K183-08", "K183-09", "K183-25", "K455-20", "K455-22", "K455-23", "K455-24",
       "K455-25", "A-29", "A-45", "A-47", "A-48", "A-53")  # fmt: skip
async def test_the_last_kafka_of_3_x_with_a_zookeeper(
    zookeeper_kafka: RealKafka,
    comparisons: Counts,
    request: pytest.FixtureRequest,
) -> None:
    await _check(zookeeper_kafka, "kafka-3.9-zk", comparisons, request)


async def _check(
    kafka: RealKafka,
    profile: str,
    comparisons: Counts,
    request: pytest.FixtureRequest,
) -> None:
    comparison = await _compare(kafka, profile)
    played = await _play_programs(kafka, profile)
    comparisons[f"{kafka.release} ({profile})"] = comparison
    comparisons[f"{kafka.release} ({profile}), at random"] = played
    assert comparison.sessions >= SESSIONS_AT_LEAST
    assert comparison.fields >= FIELDS_AT_LEAST
    unknown, stale = sift(comparison.differences, KNOWN[profile])
    assert not unknown, "\n".join(["Kafka / mock:", *map(str, unknown)])
    assert not stale, stale
    claimed = {each for mark in request.node.iter_markers("requirement") for each in mark.args}
    assert comparison.shown == claimed
    assert not played.differences, "\n".join(
        [
            "Kafka / mock:",
            *(f"{found}\n{program.to_json()}" for program, found in played.differences),
        ]
    )
    assert played.programs == PROGRAMS
    assert played.steps >= STEPS_AT_LEAST * PROGRAMS


async def _play_programs(kafka: RealKafka, profile: str) -> Played:
    """On the cluster that the sessions leave, once broker 4 has come back."""
    spared = frozenset() if kafka.zookeeper else frozenset({1})
    setting = Setting(kafka.release, profile, kafka.zookeeper, spared)
    async with RealTarget(kafka) as real:
        await real.bring_back(LAGGARD, 1)
        arena = Arena(kafka, setting, real)
        await arena.ready()
        drawn = programs(str(seeds.seed()), 0, PROGRAMS, setting, events=2, steps=12)
        return await arena.play(drawn)


async def _compare(kafka: RealKafka, profile: str) -> Comparison:
    async with (
        MockTarget.cluster(profile) as mock,
        RealTarget(kafka) as real,
        MockTarget(mock) as mocked,
    ):
        await real.ready()
        served = {
            key: Versions(
                max(real.served[key].lowest, mock.served[key].lowest),
                min(real.served[key].highest, mock.served[key].highest),
            )
            for key in API_KEYS
            if key in real.served and key in mock.served
        }
        chosen = sessions(served, zookeeper=kafka.zookeeper)
        return await play(real, mocked, chosen, served, zookeeper=kafka.zookeeper)


def test_a_known_difference_excuses_its_fields_alone_and_goes_stale() -> None:
    known = [Known("a-* #1", "rows[[]*].text", "why"), Known("b-*", "*", "why")]
    found = Difference("a-v0", 1, "X v0", ("rows[1].text: 1 / 2", "rows[1].code: 3 / 4"))
    unknown, stale = sift([found], known)
    assert [each.fields for each in unknown] == [("rows[1].code: 3 / 4",)]
    assert stale == known[1:]
    assert sift([], []) == ([], [])
