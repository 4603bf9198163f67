"""Facts about what released brokers advertise, and the file derived anew from two releases."""

import json

import pytest

from kproto.errors import SchemaError, UnknownNameError
from kproto.schema.releases import load_releases, parse_releases, release
from kproto.schema.versions import Versions
from scripts import derive_releases
from tests.support.toolchain import require

ElectLeaders = 43


@pytest.mark.parametrize(
    ("name", "api_key", "versions", "source"),
    [
        ("kafka-0.10.0", 18, "0", "KIP-35: ApiVersions begins in 0.10.0"),
        ("kafka-0.10.0", 7, "1", "ControlledShutdown v0 has a header of its own; 1.0 offers it"),
        ("kafka-1.0", 7, "0-1", "same"),
        ("kafka-2.2", 43, "0", "KIP-183 (ElectPreferredLeaders) shipped in 2.2"),
        ("kafka-2.3", 45, "none", "KIP-455 shipped in 2.4"),
        ("kafka-2.4", 43, "0-2", "KIP-460, flexible by KIP-482"),
        ("kafka-2.4", 45, "0", "KIP-455"),
        ("kafka-2.4", 46, "0", "KIP-455"),
        ("kafka-2.4", 18, "0-3", "KIP-511"),
        ("kafka-3.2", 58, "none", "DefaultApiVersionManager lost its ENVELOPE special case"),
        ("kafka-3.1", 58, "0", "DefaultApiVersionManager adds ENVELOPE where it forwards"),
        ("kafka-3.9", 4, "none", "LeaderAndIsr is for ZooKeeper brokers"),
        ("kafka-3.9-zk", 4, "0-7", "same"),
        ("kafka-3.9-zk", 6, "0-8", "same, UpdateMetadata"),
        ("kafka-3.9-zk", 75, "none", "DescribeTopicPartitions (KIP-966) needs KRaft"),
        ("kafka-3.9", 75, "0", "same"),
        ("kafka-3.9", 71, "none", "no client telemetry receiver configured (KIP-714)"),
        ("kafka-4.0", 0, "0-12", "KIP-896 keeps Produce 0 in the response for librdkafka's sake"),
        ("kafka-4.0", 1, "4-17", "KIP-896 dropped Fetch 0 to 3"),
        ("kafka-4.0", 45, "0", "KIP-860 shipped in 4.1"),
        ("kafka-4.1", 45, "0-1", "KIP-860"),
        ("kafka-4.4", 45, "0-1", "KIP-860"),
    ],
)
def test_facts(name: str, api_key: int, versions: str, source: str):
    expected = Versions.parse(versions)
    assert release(name).apis.get(api_key, Versions.NONE) == expected, source


@pytest.mark.requirement("K183-24")
def test_elections_by_request_came_with_2_2():
    """Not with 1.0, as the page planned."""
    before = [found for found in load_releases().values() if ElectLeaders not in found.apis]
    lines = {tuple(map(int, found.release.split(".")[:2])) for found in before}
    # KRaft's first release, an early access, had none either.
    assert max(lines - {(2, 8)}) == (2, 1)
    assert release("kafka-2.2").apis[ElectLeaders] == Versions(0, 0)


def test_profiles_are_whole():
    releases = load_releases()
    for name, found in releases.items():
        assert found.name == name
        assert found.obtained
        assert release(name) is found
        assert list(found.apis) == sorted(found.apis)
        # Every client needs these of every broker there ever was since 0.10.
        assert all(found.apis[key] for key in (0, 1, 2, 3, 18)), name
        line = tuple(map(int, found.release.split(".")[:2]))
        dual = (2, 8) <= line <= (3, 9)
        # Names: the plain name of a line with both modes is KRaft.
        assert (f"{name}-zk" in releases) == (dual and found.mode == "kraft")
        assert found.mode == ("zk" if line < (2, 8) or name.endswith("-zk") else "kraft")


def test_newest_of_what_is_kept_only_grows():
    """Within a mode, an API's newest version never falls from one release to the next."""
    newest: dict[tuple[str, int], int] = {}
    for found in load_releases().values():
        for api_key, versions in found.apis.items():
            before = newest.get((found.mode, api_key), -1)
            assert versions.highest >= before, (found.name, api_key)
            newest[found.mode, api_key] = versions.highest


def test_unknown_name_lists_near_ones():
    with pytest.raises(UnknownNameError, match=r"'kafka-3\.9-kraft'.*kafka-3\.9"):
        release("kafka-3.9-kraft")
    with pytest.raises(UnknownNameError, match=r"the profiles are kafka-0\.10\.0, .*kafka-4\.4"):
        release("zzz")
    with pytest.raises(UnknownNameError, match=r"did you mean kafka-2\.4\?$"):
        release("2.4")


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"format": 2, "profiles": {}}, "format 1"),
        ({"format": 1}, "profiles"),
        ({"format": 1, "profiles": {"a": []}}, "profiles.a"),
        ({"format": 1, "profiles": {"a": {"release": 1}}}, r"profiles\.a\.release"),
        (
            {
                "format": 1,
                "profiles": {
                    "a": {"release": "1", "mode": "zk", "obtained": "", "apis": {"3": [2, 1]}}
                },
            },
            r"profiles\.a\.apis\.3",
        ),
    ],
)
def test_refusals_say_where(document: object, field: str):
    with pytest.raises(SchemaError, match=field):
        parse_releases(json.dumps(document))


@pytest.mark.java
@pytest.mark.slow
def test_two_releases_derived_anew():
    """The committed ranges of one ZooKeeper-only and one dual release come out of their jars."""
    require("java", "maven")
    committed = json.loads(derive_releases.OUTPUT.read_text())["profiles"]
    derived = derive_releases.derive(["2.4.1", "3.9.2"])
    assert set(derived) == {"kafka-2.4", "kafka-3.9", "kafka-3.9-zk"}
    for name, profile in json.loads(json.dumps(derived)).items():
        assert profile == committed[name]
    controllers = json.loads(derive_releases.CONTROLLERS.read_text())["profiles"]
    derived = derive_releases.derive(["2.4.1", "3.9.2"], controllers=True)
    assert json.loads(json.dumps(derived)) == {"kafka-3.9": controllers["kafka-3.9"]}
