"""What every znode store does: the same tests on the embedded tree and on a real ZooKeeper."""

from collections.abc import Callable

import pytest

from kproto.znodes import (
    MAX_REQUEST_BYTES,
    BadArgumentsError,
    BadVersionError,
    Check,
    ConnectionLossError,
    Create,
    Delete,
    EventType,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    SessionExpiredError,
    SetData,
    WatchedEvent,
    ZnodeError,
)
from kproto.znodes.requests import multi_size


def test_a_created_znode_and_its_stat(store):
    assert store.create("/a", b"one") == "/a"
    data, stat = store.get("/a")
    assert data == b"one"
    assert stat.czxid == stat.mzxid == stat.pzxid
    assert stat.ctime == stat.mtime > 1_600_000_000_000
    assert (stat.version, stat.cversion, stat.aversion) == (0, 0, 0)
    assert (stat.ephemeral_owner, stat.data_length, stat.num_children) == (0, 3, 0)
    assert store.exists("/a") == stat


@pytest.mark.requirement("K236-57")
def test_czxid_is_a_znodes_identity_and_mzxid_tells_that_it_changed(store):
    store.create("/admin")
    store.create("/admin/reassignment", b"1")
    first = store.get("/admin/reassignment").stat
    changed = store.set("/admin/reassignment", b"2")
    assert changed.czxid == first.czxid
    assert changed.mzxid > first.mzxid
    assert (changed.ctime, changed.version) == (first.ctime, 1)
    store.delete("/admin/reassignment")
    store.create("/admin/reassignment", b"2")
    assert store.get("/admin/reassignment").stat.czxid > changed.mzxid


@pytest.mark.requirement("K236-54")
def test_sequential_names_count_every_child_ever_made(store):
    store.create("/requests")
    made = [store.create("/requests/request_", b"", sequential=True) for _ in range(3)]
    assert made == [f"/requests/request_000000000{i}" for i in range(3)]
    store.delete(made[2])
    store.create("/requests/plain")
    assert store.create("/requests/other", sequential=True) == "/requests/other0000000004"
    batch = store.multi([Create("/requests/m", sequential=True) for _ in range(2)])
    assert batch == ["/requests/m0000000005", "/requests/m0000000006"]


def test_children_are_sorted_and_counted(store):
    store.create("/a")
    for name in ("c", "a", "b"):
        store.create(f"/a/{name}")
    store.delete("/a/b")
    stat = store.exists("/a")
    assert store.children("/a") == ["a", "c"]
    assert (stat.num_children, stat.cversion, stat.version) == (2, 4, 0)
    assert stat.pzxid > store.exists("/a/c").mzxid
    assert stat.mzxid == stat.czxid
    assert store.children("/") == ["a"]


def test_refusals(store):
    store.create("/a", b"0")
    store.create("/a/x")
    store.create("/e", ephemeral=True)
    refusals: list[tuple[type[ZnodeError], Callable[[], object]]] = [
        (NodeExistsError, lambda: store.create("/a")),
        (NodeExistsError, lambda: store.create("/")),
        (NoNodeError, lambda: store.create("/no/x")),
        (NoChildrenForEphemeralsError, lambda: store.create("/e/x")),
        (NoNodeError, lambda: store.set("/no", b"")),
        (BadVersionError, lambda: store.set("/a", b"", 1)),
        (NoNodeError, lambda: store.delete("/no")),
        (BadVersionError, lambda: store.delete("/a", 1)),  # before NotEmpty
        (NotEmptyError, lambda: store.delete("/a")),
        (BadArgumentsError, lambda: store.delete("/")),
        (BadArgumentsError, lambda: store.set("/a", b"", 2**31)),
        (NoNodeError, lambda: store.get("/no")),
        (NoNodeError, lambda: store.children("/no")),
    ]
    for error, call in refusals:
        with pytest.raises(error):
            call()
    assert store.get("/a").data == b"0"
    with pytest.raises(NoNodeError, match=r"^KeeperErrorCode = NoNode for /no$") as caught:
        store.get("/no")
    assert (caught.value.code, caught.value.path) == (-101, "/no")


@pytest.mark.parametrize("version", [-1, 0])
def test_expected_versions_that_hold(store, version):
    store.create("/a", b"0")
    assert store.set("/a", b"1", version).version == 1
    store.delete("/a", -1 if version < 0 else 1)
    assert store.exists("/a") is None


def test_ephemeral_znodes_go_with_their_session(place, store):
    other = place.open()
    store.create("/kept")
    other.create("/gone", ephemeral=True)
    other.create("/kept/gone", ephemeral=True)
    assert store.exists("/gone").ephemeral_owner == other.session_id
    assert store.exists("/kept").ephemeral_owner == 0
    store.children("/", watch=True)
    store.exists("/kept/gone", watch=True)
    other.close()
    assert store.children("/") == ["kept"]
    assert store.children("/kept") == []
    # In which order the ephemeral ones go is the server's affair.
    events = store.take_events()
    assert len(events) == 2
    assert set(events) == {
        WatchedEvent(EventType.NODE_CHILDREN_CHANGED, "/"),
        WatchedEvent(EventType.NODE_DELETED, "/kept/gone"),
    }


def test_nothing_works_on_a_session_that_has_ended(store):
    store.create("/a")
    store.close()
    store.close()
    calls: list[Callable[[], object]] = [
        lambda: store.create("/b"),
        lambda: store.set("/a", b""),
        lambda: store.delete("/a"),
        lambda: store.get("/a"),
        lambda: store.exists("/a"),
        lambda: store.children("/"),
        lambda: store.multi([]),
    ]
    for call in calls:
        with pytest.raises(SessionExpiredError):
            call()
    assert store.take_events() == [WatchedEvent(EventType.SESSION_EXPIRED, "")]


# ---- watches -----------------------------------------------------------------------------------


def test_watches_fire_once_and_in_the_order_of_the_changes(place, store):
    writer = place.open()
    assert store.exists("/a", watch=True) is None
    store.children("/", watch=True)
    writer.create("/a", b"0")
    assert store.take_events() == [
        WatchedEvent(EventType.NODE_CREATED, "/a"),
        WatchedEvent(EventType.NODE_CHILDREN_CHANGED, "/"),
    ]
    writer.set("/a", b"1")
    writer.create("/b")
    assert store.take_events() == []

    store.get("/a", watch=True)
    store.exists("/b", watch=True)
    writer.set("/b", b"1")
    writer.set("/a", b"2")
    writer.set("/a", b"3")
    assert store.take_events() == [
        WatchedEvent(EventType.NODE_DATA_CHANGED, "/b"),
        WatchedEvent(EventType.NODE_DATA_CHANGED, "/a"),
    ]


def test_a_session_hears_of_a_deletion_once_whatever_it_watched(store):
    store.create("/a")
    store.get("/a", watch=True)
    store.exists("/a", watch=True)
    store.children("/a", watch=True)
    store.delete("/a")
    assert store.take_events() == [WatchedEvent(EventType.NODE_DELETED, "/a")]
    store.create("/a")
    store.create("/a/x")
    assert store.take_events() == []


def test_a_read_that_fails_leaves_no_watch_unless_it_was_exists(store):
    for read in (store.get, store.children):
        with pytest.raises(NoNodeError):
            read("/a", watch=True)
    store.create("/a")
    assert store.take_events() == []


def test_child_watches_do_not_hear_of_data_nor_of_grandchildren(store):
    store.create("/a")
    store.create("/a/x")
    store.children("/a", watch=True)
    store.set("/a", b"1")
    store.set("/a/x", b"1")
    store.create("/a/x/y")
    assert store.take_events() == []
    store.create("/a/z")
    assert store.take_events() == [WatchedEvent(EventType.NODE_CHILDREN_CHANGED, "/a")]


def test_a_wakeup_tells_that_there_are_events(place, store):
    woken = []
    watcher = place.open(wakeup=lambda: woken.append(True))
    watcher.exists("/a", watch=True)
    store.set("/", b"1")
    assert watcher.take_events() == []
    assert woken == []
    store.create("/a")
    assert watcher.take_events() == [WatchedEvent(EventType.NODE_CREATED, "/a")]
    assert woken == [True]


# ---- multi -------------------------------------------------------------------------------------


def test_a_multi_does_all_under_one_zxid(store):
    store.create("/a", b"0")
    store.exists("/a", watch=True)
    store.children("/", watch=True)
    made, stat, *nothing = store.multi(
        [Create("/b", b"new"), SetData("/a", b"1", 0), Check("/a", 1), Delete("/a"), Create("/c")]
    )
    assert made == "/b"
    assert (stat.version, stat.data_length) == (1, 1)
    assert nothing == [None, None, "/c"]
    assert store.children("/") == ["b", "c"]
    assert store.exists("/b").czxid == store.exists("/c").czxid == stat.mzxid
    assert store.take_events() == [
        WatchedEvent(EventType.NODE_CHILDREN_CHANGED, "/"),
        WatchedEvent(EventType.NODE_DATA_CHANGED, "/a"),
    ]


@pytest.mark.parametrize(
    ("failing", "error"),
    [
        (Check("/a", 7), BadVersionError),
        (Check("/no"), NoNodeError),
        (Create("/b"), NodeExistsError),  # made by an operation before it
        (Delete("/a"), NotEmptyError),
        (SetData("/no", b""), NoNodeError),
        (Create("/relative/.."), BadArgumentsError),
    ],
)
def test_a_multi_that_fails_changes_nothing(store, failing, error):
    store.create("/a", b"0")
    before = store.get("/a"), store.exists("/"), store.children("/")
    store.children("/", watch=True)
    operations = [Create("/b"), SetData("/a", b"1"), Create("/a/x"), failing, Create("/c")]
    with pytest.raises(error) as caught:
        store.multi(operations)
    assert caught.value.operation == 3
    assert "operation 3 of a multi" in str(caught.value)
    assert (store.get("/a"), store.exists("/"), store.children("/")) == before
    assert store.take_events() == []


def test_an_empty_multi(store):
    assert store.multi([]) == []


# ---- the size limit ----------------------------------------------------------------------------

CREATE_OVERHEAD, SET_OVERHEAD = 47, 20


@pytest.mark.requirement("K236-03")
def test_a_request_may_have_as_many_bytes_as_jute_maxbuffer_and_no_more(place, store):
    path = "/é"
    spare = MAX_REQUEST_BYTES - len((place.chroot + path).encode())
    store.create(path, bytes(spare - CREATE_OVERHEAD))
    assert store.set(path, bytes(spare - SET_OVERHEAD)).data_length == spare - SET_OVERHEAD
    store.create("/mine", ephemeral=True)

    before = store.get(path)
    calls: list[Callable[[], object]] = [
        lambda: store.set(path, bytes(spare - SET_OVERHEAD + 1)),
        lambda: store.set(path, bytes(2**20 + 1)),
        lambda: store.multi([Create("/x"), SetData(path, bytes(2**20))]),
    ]
    for call in calls:
        with pytest.raises(ConnectionLossError):
            call()
    store.delete("/mine")  # the session has outlived its connection
    store.delete(path)
    with pytest.raises(ConnectionLossError):
        store.create(path, bytes(spare - CREATE_OVERHEAD + 1))
    assert store.children("/") == []
    assert before.stat.version == 1


def test_a_multi_is_one_request_and_its_size_is_that_of_all(place, store):
    store.create("/a")

    def batch(size: int, chroot: str = "") -> list[Operation]:
        return [Create(f"{chroot}/b"), SetData(f"{chroot}/a", bytes(size)), Check(f"{chroot}/b")]

    largest = MAX_REQUEST_BYTES - multi_size(batch(0, place.chroot))
    with pytest.raises(ConnectionLossError):
        store.multi(batch(largest + 1))
    assert store.children("/") == ["a"]
    store.multi(batch(largest))
    assert store.exists("/a").data_length == largest


# ---- paths -------------------------------------------------------------------------------------

ILLEGAL = ["", "a", "a/b", "/a/", "//", "/a//b", "/.", "/a/..", "/a/./b"]
ILLEGAL += [
    f"/a{chr(c)}" for c in (0, 1, 0x1F, 0x7F, 0x9F, 0xE000, 0xF8FF, 0xFFF0, 0xFFFF, 0x1F600)
]
LEGAL = ["/...", "/.a", "/a.", "/a b", "/~", "/\xa0", "/é", "/\ud7ff", "/\uf900", "/\uffef"]


@pytest.mark.parametrize("path", ILLEGAL, ids=ascii)
def test_illegal_paths_are_refused(store, path):
    for call in (store.create, store.exists, store.children, store.get, store.delete):
        with pytest.raises(BadArgumentsError) as caught:
            call(path)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("path", LEGAL, ids=ascii)
def test_odd_but_legal_paths(store, path):
    assert store.create(path, b"1") == path
    assert store.children("/") == [path[1:]]
    assert store.get(path).data == b"1"
    store.delete(path)
