"""Storage of batches: what was stored is read back, whatever was cut before."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.records import Record, build_batch
from mockbroker.simulation.log.batches.batch_header import read_header
from mockbroker.simulation.log.batches.batch_storage import BatchStorage

SIZES = st.lists(st.integers(1, 5000) | st.just(66_000), min_size=1, max_size=40)


def batch(records: int = 1, size: int = 10) -> bytes:
    return build_batch([Record(timestamp=5, value=b"v" * size) for _ in range(records)])


@pytest.mark.requirement("DP-LOG-01")
def test_only_offset_and_epoch_are_written_over() -> None:
    data = batch(3)
    storage = BatchStorage()
    storage.append(data, 42, 7)
    (stored,) = storage.batches()
    assert bytes(stored.data[:8]) == (42).to_bytes(8, "big")
    assert bytes(stored.data[12:16]) == (7).to_bytes(4, "big")
    assert bytes(stored.data[8:12]) == data[8:12]
    assert bytes(stored.data[16:]) == data[16:]
    assert stored.header.last_offset == 44


@settings(max_examples=60)
@given(SIZES, st.integers(0, 2**32), st.data())
def test_what_is_stored_is_read_back(sizes: list[int], seed: int, data: st.DataObject) -> None:
    """Against a list: appending, truncating, dropping, finding, reading ranges."""
    rng = random.Random(seed)
    storage = BatchStorage()
    model: list[tuple[int, bytes]] = []
    end = 0
    for size in sizes:
        action = rng.random()
        if action < 0.75 or not model:
            made = batch(rng.randrange(1, 4), size)
            storage.append(made, end, 3)
            whole = end.to_bytes(8, "big") + made[8:12] + (3).to_bytes(4, "big") + made[16:]
            model.append((end, whole))
            end += read_header(made).last_offset_delta + 1
        elif action < 0.87:
            keep = rng.randrange(len(model) + 1)
            storage.truncate(keep)
            end = model[keep][0] if keep < len(model) else end
            del model[keep:]
        else:
            count = rng.randrange(len(model) + 1)
            assert storage.drop(count) == sum(len(each) for _, each in model[:count])
            del model[:count]
        assert len(storage) == len(model)
        assert storage.size == sum(len(each) for _, each in model)
    first = rng.randrange(len(model) + 1)
    last = rng.randrange(first, len(model) + 1)
    assert b"".join(storage.read(first, last)) == b"".join(each for _, each in model[first:last])
    for offset in range(model[0][0] if model else 0, end + 1):
        wanted = next(
            (
                index
                for index, (base, each) in enumerate(model)
                if base + read_header(each).last_offset_delta >= offset
            ),
            len(model),
        )
        assert storage.index_of(offset) == wanted


@pytest.mark.requirement("DP-PERF-25")
@pytest.mark.parametrize(
    "sizes",
    [(1000,), (10_000,), (40_000,), (60_000,), (70_000,), (600_000,), (1_100_000,), (300, 70_000)],
    ids=lambda sizes: "-".join(map(str, sizes)),
)
def test_a_stored_byte_costs_little_more_than_itself(sizes: tuple[int, ...]) -> None:
    storage = BatchStorage()
    made = [batch(1, size) for size in sizes]
    count = 0
    while storage.size < 3_000_000:
        for each in made:
            storage.append(each, count, 0)
            count += 1
    assert storage.allocated <= storage.size * 1.1
    stored = [bytes(each.data[16:]) for each in storage.batches()]
    assert stored == [each[16:] for each in made] * (count // len(made))


@pytest.mark.parametrize("size", [10, 70_000])
def test_a_write_stays_within_its_batch(size: int) -> None:
    storage = BatchStorage()
    made = batch(1, size)
    storage.append(made, 0, 0)
    storage.append(made, 1, 0)
    storage.write(0, len(made) - 1, b"!")
    assert bytes(storage.batch(0).data[-1:]) == b"!"
    assert bytes(storage.batch(1).data[16:]) == made[16:]
    with pytest.raises(ValueError, match="do not lie in the batch"):
        storage.write(0, len(made), b"!")


def test_a_large_batch_is_stored_without_a_copy_of_its_records() -> None:
    storage = BatchStorage()
    made = batch(700, 100)
    storage.append(made, 42, 7)
    header, records = storage.read(0, 1)
    assert records.obj is made
    assert bytes(header) + bytes(records) == bytes(storage.batch(0).data)
    for count in (0, 1, len(header), len(header) + 5, len(made)):
        assert b"".join(storage.read_bytes(0, count)) == bytes(storage.batch(0).data)[:count]


def test_slices_keep_their_bytes_whatever_happens_to_the_log() -> None:
    """An answer may wait for its client, or in the journal, while the log is cut or damaged."""
    storage = BatchStorage()
    made, large = batch(1, 500), batch(1, 70_000)
    for number in range(8):
        storage.append(large if number == 3 else made, number, 0)
    slices = storage.read(0, 8)
    expected = b"".join(slices)
    storage.write(7, len(made) - 1, b"!")
    storage.write(3, len(large) - 1, b"!")
    assert b"".join(slices) == expected
    storage.truncate(5)
    for number in range(5, 9):
        storage.append(batch(1, 700), number, 1)
    storage.drop(2)
    assert b"".join(slices) == expected
    assert b"".join(storage.read(0, len(storage))) != expected
