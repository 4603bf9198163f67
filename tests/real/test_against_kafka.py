"""The mock answers as a real cluster of the same release does, field by field.

What may differ: fields that are masked or without order (``compare``), and ``known_differences``.
"""

from __future__ import annotations

import pytest

from kproto.schema.versions import Versions
from tests.real.compare import Comparison, Difference, play
from tests.real.kafka import RealKafka
from tests.real.known_differences import KNOWN, Known, sift
from tests.real.sessions import API_KEYS, sessions
from tests.real.targets import MockTarget, RealTarget

SESSIONS_AT_LEAST = 60


@pytest.mark.slow
@pytest.mark.java
async def test_the_newest_kafka(kraft_kafka: RealKafka, comparisons: dict[str, Comparison]) -> None:
    comparison = await _compare(kraft_kafka, "kafka-4.4")
    comparisons[kraft_kafka.release] = comparison
    assert comparison.sessions >= SESSIONS_AT_LEAST
    unknown, stale = sift(comparison.differences, KNOWN[kraft_kafka.release])
    assert not unknown, "\n".join(["Kafka / mock:", *map(str, unknown)])
    assert not stale, stale


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
