"""Which releases have a fact, a value or a row; profiles of patch releases and of fixes."""

import gc
import re
import weakref

import pytest

from kproto.errors import UnknownNameError
from mockbroker import MockCluster
from mockbroker.profiles import all_profiles, profile
from mockbroker.simulation.releases.release import CurrentRelease, Fact, Fix, Release, Varying
from mockbroker.simulation.releases.rows import Row, always, rows_of_release

FIX = Fix("KAFKA-1", "C-01", (4, 2), "It works.", backports=((3, 9, 2), (4, 1, 1)))


def test_a_fact_has_a_beginning_an_end_and_backports() -> None:
    lasting = Fact("C-01", since=(2, 4), until=(4, 1, 2))
    having = [(2, 4), (2, 4, 1), (3, 9, 2), (4, 1), (4, 1, 1)]
    assert all(Release(each).has(lasting) for each in having)
    assert not any(Release(each).has(lasting) for each in [(0, 10, 2, 2), (2, 3, 1), (4, 1, 2)])
    having = [(3, 9, 2), (4, 1, 1), (4, 1, 2), (4, 2), (4, 2, 1), (5, 0)]
    assert all(Release(each).has(FIX) for each in having)
    assert not any(Release(each).has(FIX) for each in [(3, 8, 9), (3, 9, 1), (4, 0, 2), (4, 1)])


def test_a_fix_can_be_switched_and_nothing_else_with_it() -> None:
    other = Fact("C-01", since=(4, 2))
    assert Release((4, 0), (("KAFKA-1", True),)).has(FIX)
    assert not Release((4, 4), (("KAFKA-1", False),)).has(FIX)
    assert Release((4, 4), (("KAFKA-1", False),)).has(other)
    assert Release((4, 4), (("KAFKA-2", False),)).has(FIX)


def test_a_value_lasts_until_the_next_one() -> None:
    varying = Varying("C-01", (((0, 11), "a"), ((2, 1), "b"), ((4, 1, 1), "c")))
    releases = [(0, 11, 0, 3), (2, 0, 1), (2, 1), (4, 1), (4, 1, 1), (4, 4)]
    assert [Release(each).value_of(varying) for each in releases] == ["a", "a", "b", "b", "c", "c"]
    with pytest.raises(KeyError):
        Release((0, 10, 2)).value_of(varying)


def test_a_row_begins_or_ends_with_a_fix() -> None:
    before: Row[None, None] = Row("C-01", always, (), until=FIX)
    after: Row[None, None] = Row("C-01", always, (), since=FIX)
    for release in (Release((4, 1)), Release((4, 2), (("KAFKA-1", False),))):
        assert rows_of_release((before, after), release) == (before,)
    for release in (Release((4, 1, 1)), Release((3, 0), (("KAFKA-1", True),))):
        assert rows_of_release((before, after), release) == (after,)


def test_lines_include_their_patch_releases() -> None:
    assert all(Release(each).is_in_lines((2, 4), (3, 9)) for each in [(2, 4), (2, 4, 1), (3, 9, 2)])
    assert not any(Release(each).is_in_lines((2, 4), (3, 9)) for each in [(2, 3, 1), (4, 0)])


def test_a_profile_stands_for_the_release_that_its_versions_are_of() -> None:
    for each in all_profiles():
        assert ".".join(map(str, each.software.number)) == each.release
        assert each.software.fixes == ()
    assert profile("kafka-4.1").software == Release((4, 1, 2))


@pytest.mark.parametrize(
    ("name", "release", "fixes"),
    [
        ("kafka-4.1.0", "4.1.0", {}),
        ("kafka-4.1.2", "4.1.2", {}),
        ("kafka-3.9.1-zk", "3.9.1", {}),
        ("kafka-0.10.2.1", "0.10.2.1", {}),
        ("kafka-4.1+KAFKA-19233", "4.1.2", {"KAFKA-19233": True}),
        ("kafka-3.3.1-zk+KAFKA-14372", "3.3.1", {"KAFKA-14372": True}),
        ("kafka-4.4-KAFKA-20601-KAFKA-19233", "4.4.0",
         {"KAFKA-19233": False, "KAFKA-20601": False}),
    ],
)  # fmt: skip
def test_a_name_may_have_a_patch_release_and_fixes(name, release, fixes):
    found = profile(name)
    line = profile(re.sub(r"[+-]KAFKA-\d+", "", name).replace(release, release.rpartition(".")[0]))
    assert (found.name, found.release, dict(found.software.fixes)) == (name, release, fixes)
    assert (found.versions, found.mode) == (line.versions, line.mode)
    assert MockCluster(1, profile=name).cluster.logs.release.now == found.software


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kafka-4.1.3", "no release profile named 'kafka-4.1.3'; the last of 4.1 is 2"),
        ("kafka-4.9.1", "no release profile named 'kafka-4.9.1'"),
        ("kafka-4.1+KAFKA-1", "no fix is named 'KAFKA-1'"),
    ],
)
def test_other_names_are_refused(name: str, text: str) -> None:
    with pytest.raises(UnknownNameError, match=re.escape(text)):
        profile(name)


def test_no_cache_keeps_a_cluster() -> None:
    """Caches are by release, whose value of now they get."""
    names = [each.name for each in all_profiles()]
    clusters = [weakref.ref(MockCluster(1, profile=name).cluster) for name in names]
    gc.collect()
    assert [name for name, each in zip(names, clusters, strict=True) if each() is not None] == []
    with pytest.raises(TypeError, match="cache by its value"):
        hash(CurrentRelease((4, 4)))
