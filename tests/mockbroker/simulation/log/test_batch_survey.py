"""What the records of a batch say, against what its header says of them."""

import pytest

from kproto.records import MAX_DECOMPRESSED, Compression, Record, RecordBatches, build_batch
from mockbroker.simulation.log.batches.batch_header import read_header
from mockbroker.simulation.log.batches.batch_survey import CompressionError, survey_batch
from tests.mockbroker.simulation.log.producing import (
    FOO,
    NOW_MS,
    batch,
    changed,
    new_cluster,
    produce,
    stored,
)

pytestmark = pytest.mark.requirement("DP-PRODUCE-44")

GZIP = Compression.GZIP


@pytest.mark.parametrize("codec", [Compression.NONE, GZIP])
@pytest.mark.parametrize("claimed", [NOW_MS + 500, -1])
def test_the_stored_maximum_is_that_of_the_records(codec: Compression, claimed: int) -> None:
    cluster = new_cluster()
    data = changed(batch(b"a", b"b", compression=codec), max_timestamp=claimed)
    assert produce(cluster, data).error == 0
    (found,) = RecordBatches(stored(cluster.logs.log(FOO)))
    assert found.max_timestamp == NOW_MS
    assert [each.value for each in found.records()] == [b"a", b"b"]


def test_records_without_a_time_have_the_maximum_minus_one() -> None:
    cluster = new_cluster()
    assert produce(cluster, changed(batch(b"a", timestamp=-1), max_timestamp=7)).error == 0
    (found,) = RecordBatches(stored(cluster.logs.log(FOO)))
    assert found.max_timestamp == -1


@pytest.mark.parametrize("codec", [Compression.NONE, GZIP])
@pytest.mark.parametrize("count", [1, 3])
def test_another_count_than_the_header_says_is_refused(codec: Compression, count: int) -> None:
    data = batch(b"a", b"b", compression=codec)
    cluster = new_cluster()
    wrong = changed(data, record_count=count, last_offset_delta=count - 1)
    assert produce(cluster, wrong).error == 87
    assert cluster.logs.log(FOO).end_offset == 0
    assert produce(new_cluster((2, 3)), wrong).error == 2


@pytest.mark.parametrize("codec", [each for each in Compression if each])
def test_content_that_is_not_compressed_gets_an_unknown_error(codec: Compression) -> None:
    data = batch(b"a" * 50, compression=codec)
    cluster = new_cluster()
    answer = produce(cluster, changed(data[:-4], length=len(data) - 16))
    assert (answer.error, answer.log_start_offset) == (-1, 0)
    # So it does where the broker compresses anew.
    other = new_cluster(configs={"compression.type": "uncompressed"})
    assert produce(other, changed(data[:-4], length=len(data) - 16)).error == -1


@pytest.mark.parametrize(
    ("release", "codec", "code"),
    [((4, 4), GZIP, -1), ((2, 4), GZIP, -1), ((2, 3), GZIP, 0), ((4, 4), Compression.NONE, 0)],
)
def test_offsets_of_a_compressed_batch_are_consecutive(release, codec, code):
    """Kafka would have to build the batch anew. Until 2.3 it does."""
    records = [Record(offset=each, timestamp=NOW_MS, value=b"x") for each in (0, 2)]
    data = changed(build_batch(records, compression=codec), last_offset_delta=1)
    cluster = new_cluster(release)
    assert produce(cluster, data).error == code
    assert cluster.logs.log(FOO).end_offset == (0 if code else 2)


def test_until_1_0_a_wrong_last_offset_is_corrected() -> None:
    cluster = new_cluster((1, 0))
    assert produce(cluster, changed(batch(b"a", b"b"), last_offset_delta=7)).error == 0
    assert cluster.logs.log(FOO).end_offset == 2


def test_a_survey_of_either_engine() -> None:
    records = [Record(offset=n, timestamp=t, value=b"x") for n, t in enumerate((5, 9, 7))]
    for codec in (Compression.NONE, GZIP):
        data = build_batch(records, compression=codec)
        assert survey_batch(data, read_header(data)) == (5, 9, True)
    empty = changed(build_batch(records[:1]), record_count=0)[:61]
    empty = changed(empty, length=49)
    assert survey_batch(empty, read_header(empty)) == (-1, -1, True)


@pytest.mark.slow
def test_a_bomb_is_stopped_at_the_limit() -> None:
    """Megabytes of zeros in some kilobytes are refused, and not decompressed as a whole."""
    data = build_batch([Record(value=bytes(MAX_DECOMPRESSED), timestamp=0)], compression=GZIP)
    header = read_header(data)
    assert len(data) < MAX_DECOMPRESSED // 500
    with pytest.raises(CompressionError, match=f"more than {MAX_DECOMPRESSED} bytes"):
        survey_batch(data, header)
