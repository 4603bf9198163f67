"""What only a real server can show: its own view of paths, chroots, sessions that expire."""

import threading

import pytest

from kproto.znodes import (
    BadArgumentsError,
    ConnectionLossError,
    EventType,
    NoChildrenForEphemeralsError,
    NoNodeError,
    SessionExpiredError,
    WatchedEvent,
)
from tests.znodes.test_store import ILLEGAL, LEGAL

pytestmark = pytest.mark.java


@pytest.fixture
def open_store(zookeeper):
    from kproto.client.zookeeper import KazooStore

    stores = []

    def start(chroot="", **options):
        stores.append(KazooStore(zookeeper + chroot, **options))
        return stores[-1]

    yield start
    for store in stores:
        store.close()


def test_the_server_itself_agrees_on_which_paths_are_legal(open_store):
    """Sent as they are, past what a client checks."""
    from kazoo import exceptions
    from kazoo.protocol.serialization import Create
    from kazoo.security import OPEN_ACL_UNSAFE

    client = open_store()._client

    def create(path: str) -> object:
        answer = client.handler.async_result()
        client._call(Create(path, b"", OPEN_ACL_UNSAFE, 1), answer)
        return answer.get(timeout=10)

    client.ensure_path("/a")
    # What a server meets before it looks at the path as a whole: no slash to cut at, no parent.
    earlier = {"": exceptions.MarshallingError}
    earlier |= dict.fromkeys(["a/b", "/a//b", "/a/./b"], exceptions.NoNodeError)
    for path in ILLEGAL:
        with pytest.raises(earlier.get(path, exceptions.BadArgumentsError)):
            create(path)
    for path in LEGAL:
        assert create(path) == path


def test_a_chroot_is_made_and_is_all_a_store_sees(open_store):
    one, two, whole = open_store("/c/one"), open_store("/c/two/"), open_store()
    one.exists("/a", watch=True)
    one.create("/a", b"1")
    assert one.take_events() == [WatchedEvent(EventType.NODE_CREATED, "/a")]
    assert two.children("/") == []
    assert whole.get("/c/one/a").data == b"1"
    assert whole.children("/c") == ["one", "two"]
    one.set("/", b"root")
    assert whole.get("/c/one").data == b"root"
    assert one.create("/s", sequential=True) == "/s0000000001"
    with pytest.raises(NoNodeError, match=r"for /b$"):
        one.get("/b")


def test_a_session_that_expires_stays_expired(zookeeper, open_store):
    from kazoo.client import KazooClient

    woken = []
    store = open_store("/expiring", wakeup=lambda: woken.append(True))
    other = open_store("/expiring")
    store.create("/mine", ephemeral=True)
    other.exists("/mine", watch=True)
    # A second connection of the same session ends it, behind the first one's back.
    thief = KazooClient(zookeeper, client_id=store._client.client_id)
    thief.start(10)
    thief.stop()
    thief.close()
    assert other.take_events() == [WatchedEvent(EventType.NODE_DELETED, "/mine")]
    for _ in range(100):
        try:
            store.exists("/mine")
        except SessionExpiredError:
            break
        except ConnectionLossError:
            continue
    with pytest.raises(SessionExpiredError):
        store.create("/mine", ephemeral=True)
    assert store.take_events() == [WatchedEvent(EventType.SESSION_EXPIRED, "")]
    assert woken == [True]
    assert other.children("/") == []


def test_watches_do_not_outlive_their_connection_and_say_so(open_store):
    store = open_store("/dropped")
    store.create("/a")
    store.exists("/a", watch=True)
    with pytest.raises(ConnectionLossError):
        store.set("/a", bytes(2**20))
    assert store.exists("/a").version == 0
    assert store.take_events() == [WatchedEvent(EventType.CONNECTION_LOST, "")]
    store.set("/a", b"")
    assert store.take_events() == []


def test_a_chroot_that_cannot_be_made_is_told_and_leaves_no_session(open_store):
    whole = open_store()
    whole.create("/leaf", ephemeral=True)
    threads = threading.active_count()
    with pytest.raises(NoChildrenForEphemeralsError, match=r"for /leaf/c$"):
        open_store("/leaf/c")
    assert threading.active_count() == threads


def test_no_server_and_no_such_chroot():
    from kproto.client.zookeeper import KazooStore

    with pytest.raises(
        ConnectionLossError, match=r"no ZooKeeper server at 127\.0\.0\.1:1 responded"
    ):
        KazooStore("127.0.0.1:1", timeout=0.2)
    with pytest.raises(BadArgumentsError, match="relative names"):
        KazooStore("127.0.0.1:1/a/../b")
