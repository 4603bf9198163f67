"""What the mock serves of each profile's API keys, and the reasons for the gaps."""

import json

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from kproto.schema.versions import Versions
from mockbroker.apis import HANDLERS
from mockbroker.apis.coverage import _REASONS, coverage, gaps
from mockbroker.cli.profiles import profiles
from mockbroker.profiles import Profile, all_profiles, profile


@pytest.mark.parametrize("each", all_profiles(), ids=lambda each: each.name)
def test_each_key_of_a_profile_is_served_or_has_a_reason(each: Profile) -> None:
    apis = coverage(each)
    assert [api.api_key for api in apis] == sorted(each.versions)
    for api in apis:
        assert api.advertised == each.versions[api.api_key]
        assert bool(api.reason) is not api.complete, api


def test_the_served_versions_are_those_of_the_handlers() -> None:
    for api in coverage(profile("kafka-4.4")):
        handler = HANDLERS.get(api.api_key)
        for version in api.advertised:
            assert (version in api.served) == (handler is not None and version in handler.versions)


def test_each_reason_explains_a_gap() -> None:
    lacking = {api.api_key for api, _ in gaps(all_profiles())}
    for keys, reason in _REASONS:
        assert lacking & set(keys), reason


def test_a_version_without_a_handler_is_a_gap() -> None:
    base = profile("kafka-4.4")
    newer = replace(base, versions={**base.versions, 18: Versions(0, 9)})
    (found,) = (api for api in coverage(newer) if api.api_key == 18)
    assert (found.complete, found.served) == (False, HANDLERS[18].versions)
    assert (18, ["kafka-4.4"]) in [(api.api_key, names) for api, names in gaps([newer])]


def test_the_command_prints_the_gaps_and_their_reasons() -> None:
    result = CliRunner().invoke(profiles, ["--coverage"])
    assert result.exit_code == 0
    for api, _ in gaps(all_profiles()):
        assert f"{api.api_key} {api.name}: {api.reason}" in result.output
    lines = {line.split()[0]: line.split()[1:3] for line in result.output.splitlines() if line}
    found = coverage(profile("kafka-3.9"))
    assert lines["kafka-3.9"] == [str(len(found)), str(sum(api.complete for api in found))]


def test_the_json_has_the_versions_of_each_key() -> None:
    rows = json.loads(CliRunner().invoke(profiles, ["--coverage", "--json"]).output)
    apis = {row["name"]: row["apis"] for row in rows}["kafka-2.4"]
    assert apis["7"]["served"] is None
    assert apis["7"]["reason"]
    assert apis["18"] == {
        "name": "ApiVersions", "advertised": [0, 3], "served": [0, 3], "reason": None,
    }  # fmt: skip
