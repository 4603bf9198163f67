"""KIP-236's drop set: the examples of the page, and what must hold of any."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.simulation.reassignment.kip_236_old.requested_partitions import drop_set

_IDS = st.integers(0, 9)


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[int], list[int], int, int, list[int]]:
    """Assigned, ISR, leader, top, new target; the leader is in the ISR, or there is none."""
    assigned = draw(st.lists(_IDS, min_size=1, max_size=8, unique=True))
    isr = draw(st.lists(st.sampled_from(assigned), min_size=1, unique=True))
    leader = draw(st.sampled_from([*isr, -1]))
    target = draw(st.lists(_IDS, min_size=1, max_size=5, unique=True))
    return assigned, isr, leader, draw(st.integers(1, 9)), target


@pytest.mark.requirement("K236-64", "A-15", "A-16")
def test_the_pages_example_and_its_defect() -> None:
    # [1,2] -> [2,3] -> [2,4], 3 not yet in sync: existing is 1,2,3.
    for literal in (False, True):
        assert drop_set([1, 2, 3], [1, 2], 1, 2, [2, 4], literal=literal) == (3,)
    # 3 has joined and leads: existing is 1,3,2 behind it, and the page's words drop 2, which is an
    # original and a member of the new target, where the intermediate 3 stays.
    assert drop_set([1, 2, 3], [3, 1], 3, 2, [2, 4], literal=True) == (2,)
    assert drop_set([1, 2, 3], [3, 1], 3, 2, [2, 4]) == ()
    # existing[0:top-1] taken as Python's slice would drop the leader here.
    assert drop_set([1, 2], [1, 2], 1, 1, [2, 4], literal=True) == (2,)
    assert drop_set([1], [1], 1, 1, [4], literal=True) == ()


@pytest.mark.requirement("K236-64")
def test_those_out_of_sync_go_by_their_ids() -> None:
    assert drop_set([9, 5, 1, 7], [5], 5, 2, [8]) == (9, 7)
    assert drop_set([9, 5, 1, 7], [9, 5], 5, 3, [8]) == (7,)
    assert drop_set([9, 5, 1, 7], [9, 5], -1, 1, [8]) == (5, 1, 7)


@pytest.mark.requirement("K236-64", "K236-65", "A-15", "A-16")
@given(situations(), st.booleans())
def test_no_leader_is_dropped_and_enough_stay_in_sync(situation, literal):
    assigned, isr, leader, top, target = situation
    dropped = drop_set(assigned, isr, leader, top, target, literal=literal)
    kept = [each for each in assigned if each not in dropped]
    assert leader not in dropped
    assert list(dropped) == [each for each in assigned if each in dropped]
    in_sync = [each for each in isr if each in kept]
    assert len(in_sync) >= min(top, len(isr))
    # With top >= min.insync.replicas that leaves producers what they need.
    assert len(kept) >= min(top, len(assigned))
    if literal:
        assert len(kept) == min(top, len(assigned))
    else:
        assert not set(dropped) & set(target)
        assert set(dropped) <= set(drop_set(assigned, isr, leader, top, target, literal=True))
    # Whoever is in sync stays before anybody who is not, unless wanted.
    if set(isr) - set(kept):
        assert not set(kept) - set(isr) - (set() if literal else set(target))
