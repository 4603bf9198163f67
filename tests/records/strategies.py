"""Random records and batch settings, such as a producer or a broker could have written."""

from typing import Any

from hypothesis import strategies as st

from kproto.records import Compression, Record, TimestampType

__all__ = ["batches", "records", "settings", "timestamps"]

payloads = st.none() | st.binary(max_size=40) | st.sampled_from([b"", b"ab" * 100, bytes(9000)])
headers = st.lists(st.tuples(st.text(max_size=8), payloads), max_size=3).map(tuple)

near = st.integers(1_700_000_000_000, 1_700_000_100_000)
timestamps = near | st.sampled_from([-1, 0, 1 << 40, (1 << 62) - 1, 1 << 62, (1 << 63) - 1])
gaps = st.integers(1, 3) | st.sampled_from([64, 8192, 1 << 20, 1 << 28])
offsets = st.sampled_from([0, 1, 5, 1 << 40, (1 << 62) + 7])


@st.composite
def records(draw: st.DrawFn, magic: int = 2, most: int = 6) -> list[Record]:
    """Records of ascending offsets, perhaps with the gaps that compaction leaves."""
    found: list[Record] = []
    offset = draw(offsets)
    for _ in range(draw(st.integers(1, most))):
        timestamp = -1 if magic == 0 else draw(timestamps)
        key, value = draw(payloads), draw(payloads)
        extra = draw(headers) if magic == 2 else ()
        found.append(Record(offset, timestamp, key, value, extra))
        offset += draw(gaps)
    return found


@st.composite
def settings(draw: st.DrawFn, magic: int = 2) -> dict[str, Any]:
    """Keyword arguments of ``build_batch`` that Kafka's builder takes, too."""
    codecs = list(Compression) if magic == 2 else list(Compression)[:4]
    found: dict[str, Any] = {"magic": magic, "compression": draw(st.sampled_from(codecs))}
    if magic > 0 and draw(st.booleans()):
        found["timestamp_type"] = TimestampType.LOG_APPEND_TIME
        found["log_append_time"] = draw(near)
    if magic == 2:
        found["partition_leader_epoch"] = draw(st.integers(-1, (1 << 31) - 1))
        if draw(st.booleans()):
            found["producer_id"] = draw(st.integers(0, (1 << 63) - 1))
            found["producer_epoch"] = draw(st.integers(0, (1 << 15) - 1))
            found["base_sequence"] = draw(st.integers(0, (1 << 31) - 1))
            found["is_transactional"] = draw(st.booleans())
        if draw(st.booleans()):
            found["delete_horizon"] = draw(near)
    return found


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[Record], dict[str, Any]]:
    """What ``build_batch`` takes, of any magic."""
    magic = draw(st.sampled_from([2, 2, 1, 0]))
    return draw(records(magic)), draw(settings(magic))
