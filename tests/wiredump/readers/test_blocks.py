"""Blocks against a dictionary of bytes, and an account that does not add up."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiredump.readers import Account, AccountError
from wiredump.readers.blocks import Block, Blocks

INSERT = st.tuples(st.integers(0, 60), st.binary(min_size=1, max_size=20))


@given(st.lists(st.one_of(INSERT, st.none()), max_size=80))
def test_blocks_are_a_dictionary_in_which_the_first_wins(steps):
    """None takes the first block out. Repetitions are told of with every byte that differs."""
    blocks = Blocks()
    truth: dict[int, int] = {}
    for step in steps:
        if step is None:
            if blocks:
                first = blocks.pop_first()
                assert {at: truth.pop(at) for at in range(first.start, first.end)} == dict(
                    enumerate(first.data, first.start)
                )
            continue
        start, data = step
        known = {at: truth[at] for at in range(start, start + len(data)) if at in truth}
        repeated = blocks.insert(Block(start, data, 0, 0, 0))
        told = [at for each in repeated for at in range(each.start, each.start + each.length)]
        assert told == sorted(known)
        differing = sum(data[at - start] != value for at, value in known.items())
        assert sum(each.differing for each in repeated) == differing
        for each, following in pairwise(repeated):
            assert each.start + each.length < following.start
        truth = dict(enumerate(data, start)) | truth
        held = [(at, value) for each in blocks for at, value in enumerate(each.data, each.start)]
        assert held == sorted(truth.items())
        assert blocks.size == len(truth)
        assert len(blocks) == len(list(blocks))
        ends = (min(truth), max(truth) + 1) if truth else (None, None)
        assert (blocks.begin, blocks.end) == ends
        assert blocks.joined() == bytes(truth[at] for at in sorted(truth))


def test_many_taken_from_the_front():
    blocks = Blocks()
    for start in range(0, 2000, 2):
        blocks.insert(Block(start, b"x", 0, 0, 0))
    assert [blocks.pop_first().start for _ in range(900)] == list(range(0, 1800, 2))
    assert blocks.insert(Block(1799, b"ab", 0, 0, 0)) == [(1800, 1, 1)]
    assert [each.start for each in blocks] == [1799, *range(1800, 2000, 2)]
    assert (len(blocks), blocks.size) == (101, 101)


@pytest.mark.parametrize(
    ("account", "text"),
    [
        (Account(payload=2, data=1), "2 bytes of payload, but 1 accounted for"),
        (Account(stream=3, missing=1), "streams of 3 bytes, but 0 data and 1 missing"),
        (Account(packets=3, others={"udp": 2}), "3 packets, but 2 accounted for"),
    ],
)
def test_sums_that_do_not_agree_are_an_error(account, text):
    with pytest.raises(AccountError, match=f"^{text}$"):
        account.check()
