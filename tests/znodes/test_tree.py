"""What only the embedded tree has: the log of writes, time passed in, a limit of its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.znodes import (
    ConnectionLossError,
    Create,
    Delete,
    EmbeddedStore,
    EventType,
    SessionExpiredError,
    SetData,
    WatchedEvent,
    ZnodeError,
    ZnodeTree,
    ZnodeWrite,
)

PATHS = ["/a", "/b", "/a/x", "/a/y"]

paths = st.sampled_from(PATHS)
operations = st.one_of(
    st.builds(Create, paths, st.binary(max_size=2), st.booleans(), st.booleans()),
    st.builds(SetData, paths, st.binary(max_size=2), st.sampled_from([-1, 0, 1])),
    st.builds(Delete, paths, st.sampled_from([-1, 0])),
)
multis = st.lists(operations, min_size=2, max_size=5)


def snapshot(tree: ZnodeTree, session: int) -> dict[str, object]:
    """Every znode's data and stat."""
    found: dict[str, object] = {}
    todo = ["/"]
    while todo:
        path = todo.pop()
        found[path] = tree.get(session, path)
        todo += [f"{path.rstrip('/')}/{name}" for name in tree.children(session, path)]
    return found


@given(st.lists(st.one_of(operations, multis, st.none()), max_size=40))
def test_the_log_tells_everything_that_happened(requests):
    """Its writes, replayed, give the same data; what failed left no trace but its zxid."""
    told: list[ZnodeWrite] = []
    tree = ZnodeTree(on_write=told.append)
    reader, session = tree.open_session(), tree.open_session()
    for now_ms, request in enumerate(requests):
        before, writes = snapshot(tree, reader), len(tree.log)
        try:
            if request is None:
                tree.end_session(session, now_ms=now_ms)
                session = tree.open_session()
            elif isinstance(request, list):
                tree.multi(session, request, now_ms=now_ms)
            else:
                tree.write(session, request, now_ms=now_ms)
        except ZnodeError:
            assert snapshot(tree, reader) == before
            assert len(tree.log) == writes

    replayed: dict[str, bytes | None] = {"/": b""}
    for write in tree.log:
        assert replayed.get(write.path) == write.before
        replayed[write.path] = write.after
    assert {path: data for path, data in replayed.items() if data is not None} == {
        path: node.data for path, node in snapshot(tree, reader).items()
    }
    assert list(tree.log) == told
    zxids = [write.zxid for write in tree.log]
    assert zxids == sorted(zxids)
    assert not zxids or zxids[-1] <= tree.zxid


def test_a_write_as_it_is_logged():
    tree = ZnodeTree()
    session = tree.open_session()
    tree.write(session, Create("/a", b"0", ephemeral=True), now_ms=10)
    tree.multi(session, [SetData("/a", b"1"), Create("/b")], now_ms=20)
    tree.end_session(session, now_ms=30)
    assert tree.log == (
        ZnodeWrite(2, 10, session, "create", "/a", None, b"0"),
        ZnodeWrite(3, 20, session, "set", "/a", b"0", b"1"),
        ZnodeWrite(3, 20, session, "create", "/b", None, b""),
        ZnodeWrite(4, 30, session, "delete", "/a", b"1", None),
    )


def test_times_are_those_passed_in():
    clock = iter([100, 200])
    store = EmbeddedStore(ZnodeTree(now_ms=1), clock.__next__)
    store.create("/a")
    store.set("/a", b"")
    stat = store.get("/a").stat
    assert (stat.ctime, stat.mtime) == (100, 200)
    assert store.get("/").stat.ctime == 1


def test_a_session_ended_from_outside_has_expired():
    tree = ZnodeTree()
    woken = []
    store = EmbeddedStore(tree, lambda: 0, wakeup=lambda: woken.append(True))
    store.exists("/a", watch=True)
    tree.end_session(store.session_id, now_ms=0)
    assert not tree.is_open(store.session_id)
    with pytest.raises(SessionExpiredError, match=r"Session expired for /a$"):
        store.create("/a")
    EmbeddedStore(tree, lambda: 0).create("/a")
    assert store.take_events() == [WatchedEvent(EventType.SESSION_EXPIRED, "")]
    assert woken == [True]


def test_a_wakeup_may_write():
    """It finds the tree in order, and events still come in the order of the changes."""
    tree = ZnodeTree()
    reader = EmbeddedStore(tree, lambda: 0)

    def answer() -> None:
        if writer.exists("/request"):
            writer.multi([Create("/answer"), Delete("/request")])

    writer = EmbeddedStore(tree, lambda: 0, wakeup=answer)
    for path in ("/request", "/answer"):
        reader.exists(path, watch=True)
        writer.exists(path, watch=True)
    reader.create("/request")
    assert reader.children("/") == ["answer"]
    assert reader.take_events() == [
        WatchedEvent(EventType.NODE_CREATED, "/request"),
        WatchedEvent(EventType.NODE_CREATED, "/answer"),
    ]


def test_a_limit_of_ones_own_says_what_was_too_long():
    tree = ZnodeTree(max_request_bytes=100)
    session = tree.open_session()
    tree.write(session, Create("/a", bytes(100 - 47 - 2)), now_ms=0)
    with pytest.raises(ConnectionLossError, match=r"has 101 bytes, but the server accepts 100 \("):
        tree.write(session, Create("/b", bytes(100 - 47 - 1)), now_ms=0)
    assert tree.children(session, "/") == ["a"]


def test_a_tree_counts_on_from_a_zxid() -> None:
    """As the one of a server in its fifth epoch."""
    before = 5 << 32 | 17
    tree = ZnodeTree(zxid=before)
    store = EmbeddedStore(tree, lambda: 0)
    store.create("/a", b"")
    stat = store.get("/a").stat
    assert (tree.zxid, stat.czxid, stat.mzxid) == (before + 2, before + 2, before + 2)
