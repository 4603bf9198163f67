"""Both backends behind one fixture: a place for znodes of its own, and sessions on it."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kproto.znodes import EmbeddedStore, ZnodeStore, ZnodeTree
from tests.support.toolchain import require_module
from tests.support.zookeeper import running_server

START_MS = 1_700_000_000_000

_chroots = itertools.count()


class Place:
    """Where a test keeps its znodes. ``open`` begins a session; all end with the test."""

    def __init__(self, kind: str, chroot: str, begin: Callable[..., ZnodeStore]) -> None:
        self.kind = kind
        self.chroot = chroot
        """What the server puts before each path: it counts against the size of a request."""
        self._begin = begin
        self._stores: list[ZnodeStore] = []

    def open(self, **options: Any) -> ZnodeStore:
        store = self._begin(**options)
        self._stores.append(store)
        return store

    def close(self) -> None:
        for store in self._stores:
            store.close()


def embedded_place() -> Place:
    tree = ZnodeTree(now_ms=START_MS)
    clock = itertools.count(START_MS + 1)
    return Place("embedded", "", lambda **options: EmbeddedStore(tree, clock.__next__, **options))


def zookeeper_place(address: str) -> Place:
    from kproto.client.zookeeper import KazooStore

    chroot = f"/test-{next(_chroots)}"
    return Place("zookeeper", chroot, lambda **options: KazooStore(address + chroot, **options))


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[str]:
    """The address of a real server, started once."""
    require_module("kazoo")
    with running_server() as address:
        yield address


@pytest.fixture(params=["embedded", pytest.param("zookeeper", marks=pytest.mark.java)])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "embedded":
        here = embedded_place()
    else:
        here = zookeeper_place(request.getfixturevalue("zookeeper"))
    yield here
    here.close()


@pytest.fixture
def store(place: Place) -> ZnodeStore:
    return place.open()
