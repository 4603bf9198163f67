"""What each profile serves, and how a client comes down to it."""

import asyncio

import pytest

from kproto.client import Connection
from kproto.dialects import dialect
from kproto.schema.releases import load_releases
from kproto.schema.versions import Versions
from mockbroker import MockCluster
from mockbroker.apis import HANDLERS
from mockbroker.apis.common.dialect_handlers import dialect_handlers
from mockbroker.errors import ClusterError
from mockbroker.options.option_types import parse_api_override
from mockbroker.profiles import DEFAULT_PROFILE, all_profiles, profile
from mockbroker.serving.served_versions import served_versions
from tests.mockbroker.wire import PATIENCE, Wire, connect
from tests.support.requests import request_of

PROFILES = list(load_releases())
SOME = [
    "kafka-0.10.0",
    "kafka-2.3",
    "kafka-2.4",
    "kafka-3.9-zk",
    "kafka-3.9",
    "kafka-4.1",
    "kafka-4.4",
]
HELLO = request_of("ApiVersions", client_software_name="test", client_software_version="1")


def test_every_release_is_a_profile_then_the_drafts_and_the_default_is_the_newest() -> None:
    names = [each.name for each in all_profiles()]
    assert names[: len(PROFILES)] == PROFILES
    assert all(name.startswith("kip-") for name in names[len(PROFILES) :])
    assert len(set(names)) == len(names)
    assert list(load_releases())[-1] == DEFAULT_PROFILE


@pytest.mark.parametrize("name", PROFILES)
def test_nothing_a_release_advertises_is_lost(name: str) -> None:
    """The codec has every version of every key, so that no range has to be cut."""
    found = profile(name)
    assert served_versions(found, dialect("kafka")) == dict(found.versions)


@pytest.mark.parametrize("name", PROFILES)
def test_implemented_only_is_a_part_of_it(name: str) -> None:
    found = profile(name)
    narrow = served_versions(found, dialect("kafka"), implemented_only=True)
    assert narrow
    for key, versions in narrow.items():
        assert HANDLERS[key].versions.covers(versions)
        assert versions == found.versions[key]


def unsupported(wire: Wire, version: int, end: bytes) -> bytes:
    """An ApiVersions request of this version, whose header has ``end`` behind the client id."""
    frame = wire.frame(request_of("ApiVersions"), 0)
    frame = frame[4:6] + version.to_bytes(2, "big", signed=True) + frame[8:] + end
    return len(frame).to_bytes(4, "big") + frame


@pytest.mark.requirement("REL-01")
@pytest.mark.parametrize(
    ("name", "version", "end", "answers"),
    [
        ("kafka-2.3", 99, b"", True),
        ("kafka-2.4", 99, b"", False),
        ("kafka-4.4", 99, b"", False),
        ("kafka-4.4", 99, b"\0", True),
        ("kafka-4.4", 99, b"\1\x63\2ab", True),
        ("kafka-4.4", 99, b"\1\x63\2a", False),
        ("kafka-4.4", 99, b"\xff", False),
        ("kafka-4.4", 99, b"\0\1\1\0", True),
        ("kafka-4.4", -1, b"", True),
        ("kafka-4.4", -1, b"\xff", True),
    ],
)
async def test_a_header_of_api_versions_is_read_whole(name, version, end, answers):
    async with MockCluster(1, profile=name) as mock, connect(mock, 1) as wire:
        wire.send(unsupported(wire, version, end))
        if answers:
            assert await wire.receive()
        else:
            with pytest.raises(asyncio.IncompleteReadError):
                await wire.receive()


@pytest.mark.requirement("REL-01")
@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("asked", [99, 32767, -1, None])
async def test_api_versions_above_the_highest(name: str, asked: int | None) -> None:
    found = profile(name)
    highest = found.versions[18].highest
    async with MockCluster(profile=name) as mock, connect(mock) as wire:
        version = highest + 1 if asked is None else asked
        wire.send(unsupported(wire, version, b"\0"))
        header, body = wire.codec.decode_response(await wire.receive(), api_key=18, api_version=0)
        assert (header.correlation_id, body.error_code) == (1, 35)  # type: ignore[attr-defined]
        rows = [(row.api_key, row.min_version, row.max_version) for row in body.api_keys]  # type: ignore[attr-defined]
        before_kip_511 = name in ("kafka-0.10.0", "kafka-2.3")
        assert rows == ([] if before_kip_511 else [(18, 0, highest)])
        # The connection stays open, and the client comes down.
        answer = await wire.ask(HELLO, highest)
        assert {row.api_key for row in answer.api_keys} == set(found.versions)
        (entry,) = mock.journal.select(event="unsupported", direction="response")
        assert entry.api_version == 0


@pytest.mark.parametrize("name", SOME)
@pytest.mark.requirement("C-07")
async def test_our_own_client_negotiates(name: str) -> None:
    async with MockCluster(profile=name, topics=["foo:1:1"]) as mock:
        host, port = mock.addresses[1].split(":")
        async with await Connection.open(host, int(port), timeout=PATIENCE) as connection:
            assert connection.peer_versions == dict(mock.served)
            answer = await connection.request(request_of("Metadata", topics=[]))
            assert [broker.node_id for broker in answer.brokers] == [1, 2, 3]


@pytest.mark.requirement("C-07")
async def test_the_advertised_ranges_are_what_is_served() -> None:
    """Every version in range is answered (perhaps with an error); those around it close."""
    apis = {key: Versions(1, 2) for key in (3,)}
    async with MockCluster(apis=apis) as mock:
        for version in range(4):
            async with connect(mock) as wire:
                wire.send(wire.frame(request_of("Metadata", topics=[]), version))
                if version in (1, 2):
                    await wire.receive()
                else:
                    assert await wire.closed() == b""


async def test_a_hidden_key_is_not_listed_and_not_served() -> None:
    async with MockCluster(apis={45: None}) as mock, connect(mock) as wire:
        assert 45 not in {row.api_key for row in (await wire.ask(HELLO, 3)).api_keys}


async def test_without_key_18_even_api_versions_closes() -> None:
    async with MockCluster(apis={18: None}) as mock, connect(mock) as wire:
        wire.send(wire.frame(HELLO, 3))
        assert await wire.closed() == b""


@pytest.mark.requirement("A-45")
async def test_reply35_answers_in_the_nearest_version_served() -> None:
    async with MockCluster(apis={45: Versions(0, 0)}, reply35=True) as mock, connect(mock) as wire:
        wire.send(wire.frame(request_of("AlterPartitionReassignments"), 1))
        _, body = wire.codec.decode_response(await wire.receive(), api_key=45, api_version=0)
        assert body.error_code == 35  # type: ignore[attr-defined]
        assert (await wire.ask(HELLO, 3)).error_code == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("45=0-0", (45, Versions(0, 0))),
        ("45=1", (45, Versions(1, 1))),
        ("45=0-1", (45, Versions(0, 1))),
        ("45=off", (45, None)),
        ("45=none", (45, None)),
        ("ALTER_PARTITION_REASSIGNMENTS=0", (45, Versions(0, 0))),
        ("elect-leaders=off", (43, None)),
    ],
)
def test_an_override_is_read(text: str, expected: tuple[int, Versions | None]) -> None:
    assert parse_api_override(text) == expected


@pytest.mark.parametrize(
    "text", ["", "45", "45=", "45=x", "45=1-0", "45=-1", "=0", "NOPE=0", "-1=0"]
)
def test_a_bad_override_is_refused(text: str) -> None:
    with pytest.raises(ClusterError):
        parse_api_override(text)


@pytest.mark.parametrize(
    ("key", "versions"), [(45, Versions(0, 2)), (999, Versions(0, 0)), (999, None)]
)
def test_versions_the_codec_lacks_cannot_be_served(key: int, versions: Versions | None) -> None:
    with pytest.raises(ClusterError, match=str(key)):
        MockCluster(apis={key: versions})


def test_an_open_range_ends_where_the_codec_does() -> None:
    assert MockCluster(apis={45: Versions.parse("0+")}).served[45] == Versions(0, 1)


@pytest.mark.parametrize(
    ("name", "apis", "problem"),
    [
        (
            "kafka-3.9-zk", {45: Versions(0, 1)},
            r"kafka-3.9-zk has ALTER_PARTITION_REASSIGNMENTS \(45\) at versions 0, not 0-1; "
            "kafka-4.1 has",
        ),
        ("kafka-2.3", {45: Versions(0, 0)}, "at no version; kafka-2.4 has"),
        ("kafka-2.2", {43: Versions(0, 2)}, "ELECT_LEADERS"),
        ("kafka-1.1", {3: Versions(0, 12)}, "METADATA"),
        ("kafka-4.1", {4: Versions(0, 7)}, "LEADER_AND_ISR"),
    ],
)  # fmt: skip
def test_a_newer_version_than_the_release_has_is_refused(name, apis, problem):
    """Its controller would carry out what it never knew: a replication factor that must not change
    changed, and the answer said that it had not."""
    with pytest.raises(ClusterError, match=problem):
        MockCluster(profile=name, apis=apis)
    ((key, versions),) = apis.items()
    if key not in (4, 5, 6):  # a controller's requests, which brokers of several releases get
        with pytest.raises(ClusterError, match=problem):
            MockCluster(
                profile=name, broker_levels={2: f"{key}={versions.lowest}-{versions.highest}"}
            )


@pytest.mark.slow
def test_every_newer_version_of_every_release_is_refused_or_not_carried_out() -> None:
    handlers = dialect_handlers(dialect("kafka"))
    for found in all_profiles():
        if found.dialect != "kafka":
            continue
        for key, handler in handlers.items():
            own = found.versions.get(key) or found.optional_versions.get(key)
            newest = handler.versions.highest
            if own is not None and newest <= own.highest:
                MockCluster(profile=found, apis={key: Versions(newest, newest)})
                continue
            with pytest.raises(ClusterError, match=rf"\({key}\)"):
                MockCluster(profile=found, apis={key: Versions(newest, newest)})


def test_what_the_mock_does_not_answer_itself_is_served_at_any_version() -> None:
    """A script of the test's own answers, or error 35."""
    assert MockCluster(profile="kafka-2.4", apis={56: Versions(0, 0)}).served[56] == Versions(0, 0)
