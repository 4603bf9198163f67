"""A live server under a small fire of a fixed seed, counted and not timed. ``python -m fuzz.fire``
is the large one."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.fire.ammunition import Magazine, Shooter, Shot, load
from fuzz.fire.trial import Settings, under_fire
from mockbroker import MockCluster
from tests.mockbroker.wire import connect
from tests.support.full import either

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="what a process holds is read from /proc"
)

FEW = 8
"""Messages whose vectors are thrown: making all takes seconds."""


@pytest.mark.slow
@pytest.mark.requirement("C-09")
@pytest.mark.parametrize(
    ("frames", "tls", "sasl"),
    [(either(20_000, sampled=6_000), False, False), (2000, True, False), (4000, False, True)],
)
async def test_every_malformed_frame_is_refused_and_every_question_answered(frames, tls, sasl):
    outcome = await under_fire(
        Settings(frames=frames, connections=300, seed=455, tls=tls, sasl=sasl, messages=FEW)
    )
    assert outcome.violations == []
    assert outcome.malformed.total() == frames
    assert outcome.sent == outcome.correct
    assert min(outcome.sent.values()) > 0
    assert outcome.files_after <= outcome.files_before


@pytest.mark.slow
async def test_what_has_to_be_refused_is_refused_for_itself() -> None:
    """The fire's own promise: a frame that it calls malformed closes the connection, and so does no
    sound one. Else "refused" would show nothing."""
    magazine = load("kafka-4.1", 1, messages=FEW)
    shooter = Shooter(magazine, 1)
    shots = [shooter.shot() for _ in range(300)]
    assert shots == [*_again(magazine, 300)]
    assert len({shot.kind for shot in shots}) > 10
    async with MockCluster(1) as mock:
        for shot in shots:
            async with connect(mock) as wire:
                wire.send(shot.data)
                if shot.half_close:
                    wire.writer.write_eof()
                assert not ((await wire.closed()) and shot.ends == "refused"), shot
        async with connect(mock) as wire:
            wire.send(magazine.sound[0])
            # It is answered, or at least not closed on: the question behind it is.
            wire.send(b"\0\0\0\x0a\0\x12\0\0\0\0\0\x09\xff\xff")
            ids = {(await wire.receive())[4:8] for _ in range(2)}
            assert b"\0\0\0\x09" in ids


def _again(magazine: Magazine, count: int) -> Iterator[Shot]:
    shooter = Shooter(magazine, 1)
    return (shooter.shot() for _ in range(count))


@pytest.mark.slow
async def test_a_server_that_fails_is_told_of(tmp_path: Path) -> None:
    """A fire that no server can fail shows nothing: this one closes on every Metadata from the
    tenth on (each broker was asked three before anything was thrown), and is given no memory."""
    faults = tmp_path / "faults.json"
    rule = {"name": "deaf", "api": "Metadata", "nth": "10+", "disconnect": "before"}
    faults.write_text(json.dumps({"faults": [rule]}))
    options = ("--faults", str(faults))
    outcome = await under_fire(
        Settings(frames=200, connections=60, messages=2, most_memory=1, options=options)
    )
    told = "\n".join(outcome.violations)
    assert outcome.correct["standing"] < outcome.sent["standing"]
    for what in ("standing, ", "standing: ", "raw, ", "the limit is 1"):
        assert what in told
