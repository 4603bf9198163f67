"""The same captures by tshark: its frames are ours, its fields are ours, its streams are ours.

What differs is listed, with reasons, in ``explained``. Of the large captures one, drawn by the
run's seed; all of them in a full run, which also counts how often each reason is met.
"""

from collections import Counter
from pathlib import Path

import pytest

from kspec.runner import toolchains
from tests.captures.reading import NAMES, manifest
from tests.captures.test_captures import uncompressed
from tests.captures.worse import made_worse
from tests.support import seeds
from tests.support.full import FULL, drawn
from tests.support.toolchain import require
from tests.tshark.badly import badly_captured
from tests.tshark.compare import Agreement, Difference, compare
from tests.tshark.explained import COUNTED_WITH, EXPLAINED, GIVEN_UP, LEFT_OUT, UNSEEN, Explained
from tests.tshark.streams import Parts, followed, ours

pytestmark = pytest.mark.slow

EVERYDAY = [name for name in NAMES if "everyday" in name]
COMPARED = {*NAMES} - {*EVERYDAY} | {*drawn("everyday captures", EVERYDAY, few=1)}
CONNECTIONS = 20
BADLY_CAPTURED = 8


@pytest.fixture(scope="module")
def agreement(tmp_path_factory: pytest.TempPathFactory) -> Agreement:
    require("tshark")
    found = Agreement()
    for name in sorted(COMPARED):
        capture = tmp_path_factory.mktemp("tshark") / f"{name}.pcap"
        capture.write_bytes(uncompressed(name))
        compare(capture, manifest()[name]["ports"], found)
    return found


@pytest.fixture(scope="module")
def counted() -> bool:
    """Whether this is the tshark that ``explained`` counted with."""
    return COUNTED_WITH in (toolchains.find("tshark") or "")


def explanation(difference: Difference) -> Explained | None:
    for row in EXPLAINED:
        if (difference.api, difference.version) == (row.api, row.version):
            return row if difference.theirs in row.theirs else None
    return None


def test_every_field_that_tshark_finds(agreement, counted, figures):
    fields, agreed = agreement.fields.total(), agreement.agreed.total()
    pairs = len(agreement.fields)
    figures.append(
        f"{agreed} of {fields} fields of {pairs} (api key, version) pairs agree, in"
        f" {agreement.compared} frames; of {agreement.frames - agreement.compared} others"
        f" {agreement.headers_agreed} of {agreement.header_fields} header fields"
    )
    seen: Counter[Explained | None] = Counter(map(explanation, agreement.differences))
    unexplained = [each for each in agreement.differences if explanation(each) is None]
    assert not unexplained, unexplained[:10]
    assert agreed == fields - len(agreement.differences)
    assert agreement.compared > 200
    assert agreed > 2_000
    if FULL:
        assert (agreement.compared, pairs) >= (12_000, 70)
        assert agreed > 230_000
    if FULL and counted:
        assert seen == {row: row.seen for row in EXPLAINED}


def test_every_header(agreement: Agreement) -> None:
    """Also of frames that tshark cannot read any further."""
    assert agreement.headers_agreed == agreement.header_fields > (40_000 if FULL else 1_000)


def test_where_tshark_has_less(agreement: Agreement, counted: bool, figures: list[str]) -> None:
    figures.append(f"frames whose bodies tshark does not decode: {dict(agreement.left_out)}")
    assert agreement.left_out.keys() <= LEFT_OUT.keys()
    assert {api for api, _ in agreement.unseen} <= UNSEEN.keys()
    assert (+agreement.malformed).keys() <= GIVEN_UP.keys()
    if FULL and counted:
        assert agreement.left_out == LEFT_OUT
        assert +agreement.malformed == GIVEN_UP
        assert {api for api, _ in agreement.unseen} == UNSEEN.keys()


def test_requests_and_responses_are_paired_alike(agreement: Agreement, figures: list[str]) -> None:
    figures.append(f"{agreement.paired} links between requests and responses, all of them ours")
    assert agreement.paired > (6_000 if FULL else 100)
    assert not agreement.wrongly_paired


@pytest.mark.parametrize("name", ["mock-4.4", "kafka-4.4.0-secured"])
@pytest.mark.parametrize(("lost", "repeated"), [(0.0, 0.0), (0.0, 0.3), (0.05, 0.1)])
def test_streams_of_real_traffic(tmp_path, name, lost, repeated, rng):
    """As it was captured, and with packets lost and repeated. (None late: tshark takes for lost
    what is acknowledged before it is seen, and we wait.)"""
    require("tshark")
    capture = tmp_path / "capture.pcap"
    capture.write_bytes(made_worse(uncompressed(name), rng, lost=lost, repeated=repeated))
    mine = ours(capture)
    theirs = followed(capture, 1 + max(stream for stream, _ in mine))
    assert mine.keys() >= theirs.keys()
    for key, parts in mine.items():
        assert is_as_far_as_acknowledged(theirs.get(key, []), parts), key


@pytest.mark.parametrize("number", range(BADLY_CAPTURED))
def test_streams_badly_captured(tmp_path: Path, number: int) -> None:
    """Lost, repeated with other bounds, overtaken, around the wrap of sequence numbers."""
    require("tshark")
    capture = tmp_path / "capture.pcap"
    capture.write_bytes(badly_captured(seeds.seed() + number, CONNECTIONS))
    mine = ours(capture)
    assert {key: without_the_end(parts) for key, parts in mine.items()} == followed(
        capture, CONNECTIONS
    )
    assert sum(isinstance(part, int) for parts in mine.values() for part in parts) > 20


def is_as_far_as_acknowledged(theirs: Parts, mine: Parts) -> bool:
    """Where a connection is reset, nobody acknowledges what came last: tshark then shows neither
    the gap before it nor, of a segment or two, the bytes behind."""
    rest = mine[len(theirs) :]
    behind = [part for part in rest if isinstance(part, bytes)]
    return mine[: len(theirs)] == theirs and (
        not rest or (isinstance(rest[0], int) and len(behind) <= 1)
    )


def without_the_end(parts: Parts) -> Parts:
    """tshark says nothing of what is missing at a stream's end, which the FIN tells."""
    return parts[:-1] if isinstance(parts[-1], int) else parts
