"""Random sequences of operations on the embedded tree and on a real ZooKeeper: all the same.

Compared after every step: what it returned or which error it raised (and of which operation of a
multi), every field of every stat but the times, zxids counted from the start of the sequence, and
the watch events each session got. At the end: every znode there is.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kproto.znodes import (
    Check,
    Create,
    Delete,
    Operation,
    SetData,
    Stat,
    Znode,
    ZnodeError,
    ZnodeStore,
)
from tests.znodes.conftest import Place, embedded_place, zookeeper_place

PATHS = ["/", "/a", "/a", "/a/x", "/a/x", "/a/x/y", "/a/x0000000001"]
"""Few, so that steps meet each other's traces."""
SESSIONS = 2


class Step(NamedTuple):
    """One call of one session, as ``ZnodeStore`` has it; "watch" leaves every watch there is."""

    session: int
    call: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]


paths = st.sampled_from(PATHS)
data = st.binary(max_size=3)
versions = st.sampled_from([-1, -1, -1, 0, 1, 2, -2])
booleans = st.booleans()
sessions = st.integers(0, SESSIONS - 1)
operations: st.SearchStrategy[Operation] = st.one_of(
    st.builds(Create, paths, data, booleans, booleans),
    st.builds(SetData, paths, data, versions),
    st.builds(Delete, paths, versions),
    st.builds(Check, paths, versions),
)


def step(calls: list[str], *arguments: st.SearchStrategy[Any], **options: Any) -> Any:
    return st.builds(
        Step,
        sessions,
        st.sampled_from(calls),
        st.tuples(*arguments),
        st.fixed_dictionaries(options),
    )


steps = st.one_of(
    step(["create"], paths, data, ephemeral=booleans, sequential=booleans),
    step(["create"], paths, data, ephemeral=booleans),
    step(["create"], paths, data),
    step(["set"], paths, data, versions),
    step(["delete"], paths, versions),
    step(["multi"], st.lists(operations, max_size=4)),
    step(["get", "exists", "children"], paths, watch=booleans),
    step(["watch"], paths),
    step(["close"]),
)


class Run:
    """Steps taken in one place, each as a comparable outcome."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._stores: list[ZnodeStore] = [place.open() for _ in range(SESSIONS)]
        self._names = {0: "nobody"}
        for index, store in enumerate(self._stores):
            self._names[store.session_id] = f"session {index}"
        marker = self._stores[0].create("/marker")
        self._start = self._stores[0].get(marker).stat.czxid
        self._stores[0].delete(marker)

    def take(self, step: Step) -> Any:
        outcome = self._try(step)
        events = [store.take_events() for store in self._stores]
        if step.call == "close":
            # Ephemeral znodes go in no order to rely on. Then the next session takes the place.
            events = [sorted(each, key=repr) for each in events]
            self._stores[step.session] = self._place.open()
            self._names[self._stores[step.session].session_id] = f"session {step.session}"
        return outcome, events

    def _try(self, step: Step) -> Any:
        store = self._stores[step.session]
        call: Callable[..., Any] = (
            _watch(store) if step.call == "watch" else getattr(store, step.call)
        )
        try:
            return self._plain(call(*step.arguments, **step.options))
        except ZnodeError as error:
            return type(error), error.operation

    def _plain(self, value: Any) -> Any:
        """Stats without times, with zxids from the start and owners by name."""
        match value:
            case Stat():
                zxids = [value.czxid, value.mzxid, value.pzxid]
                return value._replace(
                    **dict(zip(["czxid", "mzxid", "pzxid"], map(self._since, zxids), strict=True)),
                    ctime=0,
                    mtime=0,
                    ephemeral_owner=self._names.get(value.ephemeral_owner, "someone gone"),
                )
            case Znode():
                return value.data, self._plain(value.stat)
            case list():
                return [self._plain(item) for item in value]
        return value

    def _since(self, zxid: int) -> int:
        """0 for what was there before the run."""
        return max(0, zxid - self._start)

    def everything(self) -> Iterator[tuple[str, Any]]:
        """Every znode, parents before their children."""
        todo = ["/"]
        while todo:
            path = todo.pop()
            yield path, self._plain(self._stores[0].get(path))
            parent = path.rstrip("/")
            todo += [f"{parent}/{name}" for name in self._stores[0].children(path)]


def _watch(store: ZnodeStore) -> Callable[[str], Any]:
    return lambda path: [store.exists(path, watch=True), store.children(path, watch=True)]


@pytest.mark.java
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(sequence=st.lists(steps, min_size=20, max_size=60))
def test_the_embedded_tree_does_what_zookeeper_does(zookeeper, sequence):
    ours, theirs = embedded_place(), zookeeper_place(zookeeper)
    try:
        here, there = Run(ours), Run(theirs)
        for step in sequence:
            assert here.take(step) == there.take(step), step
        assert list(here.everything()) == list(there.everything())
    finally:
        ours.close()
        theirs.close()
