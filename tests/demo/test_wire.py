"""The demo's judgement of a wire: what is right passes, and each way of being wrong is named."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

import kproto
from demo.catalog import CLIENTS, client
from demo.wire import PROFILES, misdirected, negotiation_problems, version_problems
from kproto.journal import Entry, Journal
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
)
from kproto.messages.api_versions_response import ApiVersion

OLD, NEW = PROFILES
KAFKA_PYTHON = client("kafka-python")


class Talk:
    """A journal written by hand: requests and responses of one connection."""

    def __init__(self, broker_id: int = 1) -> None:
        self.journal = Journal()
        self.broker_id = broker_id
        self.correlation_id = 0

    def ask(self, body, version: int) -> Talk:
        self.correlation_id += 1
        frame = kproto.encode_request(
            body, api_version=version, correlation_id=self.correlation_id, client_id="c"
        )
        self._record("request", body.API_KEY, version, frame)
        return self

    def answer_versions(self, ranges, version: int, error_code: int = 0) -> Talk:
        body = ApiVersionsResponse(
            error_code=error_code,
            api_keys=[
                ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in ranges.items()
            ],
        )
        frame = kproto.encode_response(
            body, api_version=version, correlation_id=self.correlation_id
        )
        self._record("response", 18, version, frame)
        return self

    def _record(self, direction, api_key: int, version: int, frame: bytes) -> None:
        self.journal.record(
            0, self.broker_id, 1, direction, "", api_key, version, self.correlation_id, raw=frame
        )

    @property
    def entries(self) -> list[Entry]:
        return list(self.journal)


def versions(version: int) -> ApiVersionsRequest:
    body = ApiVersionsRequest()
    if version >= 3:
        body.client_software_name = "x"
        body.client_software_version = "1"
    return body


def refused() -> Talk:
    return Talk().ask(versions(4), 4).answer_versions({18: (0, 3)}, 0, error_code=35)


def settled() -> Talk:
    return refused().ask(versions(3), 3).answer_versions(OLD.ranges, 3)


def problems(talk: Talk) -> str:
    return "; ".join(negotiation_problems(talk.entries, KAFKA_PYTHON, OLD))


def test_the_fallback_of_an_old_broker_is_right():
    assert problems(settled().ask(MetadataRequest(topics=None), 9)) == ""


def test_silence_is_not_right():
    assert problems(Talk()) == "nothing was sent"


def test_a_first_request_of_another_version_is_named():
    talk = Talk().ask(versions(3), 3).answer_versions(OLD.ranges, 3)
    assert problems(talk) == "first request is ApiVersions v3, not ApiVersions v4"


def test_a_client_that_gives_up_after_the_refusal_is_named():
    assert problems(refused()) == "no second ApiVersions after the refusal of v4"


@pytest.mark.parametrize(
    ("ranges", "version", "error_code", "problem"),
    [
        ({18: (0, 3)}, 0, 0, "was not refused"),
        ({}, 0, 35, "the refusal of ApiVersions lists []"),
        ({18: (0, 4)}, 0, 35, "the refusal of ApiVersions lists [(18, 0, 4)]"),
    ],
)
def test_a_broker_that_refuses_in_another_way_is_named(ranges, version, error_code, problem):
    talk = Talk().ask(versions(4), 4).answer_versions(ranges, version, error_code)
    talk.ask(versions(3), 3).answer_versions(OLD.ranges, 3)
    assert problem in problems(talk)


def test_ranges_that_are_not_the_release_s_are_named():
    talk = refused().ask(versions(3), 3).answer_versions({**OLD.ranges, 45: (0, 1)}, 3)
    assert problems(talk) == "kafka-2.4 does not advertise AlterPartitionReassignments 0-1"


def test_a_version_that_was_not_advertised_is_named():
    talk = settled().ask(MetadataRequest(topics=None), 10)
    assert "Metadata v10 was sent but is not advertised" in problems(talk)


def test_a_version_below_the_best_is_named():
    talk = Talk().ask(versions(4), 4).answer_versions(NEW.ranges, 4)
    talk.ask(AlterPartitionReassignmentsRequest(topics=[]), 0)
    found = version_problems(talk.entries, talk.entries, KAFKA_PYTHON, NEW)
    assert found == ["AlterPartitionReassignments was sent in v0; both sides know v1"]


def test_only_a_broker_that_does_not_forward_has_to_be_the_controller():
    entries = Talk(broker_id=2).ask(AlterPartitionReassignmentsRequest(topics=[]), 0).entries
    assert misdirected(entries, OLD, controller=2) == []
    assert misdirected(entries, NEW, controller=3) == []
    assert misdirected(entries, OLD, controller=3) == [
        "AlterPartitionReassignments went to broker 2, not controller 3"
    ]


def test_the_ranges_known_by_heart_are_those_of_the_releases():
    text = (Path(__file__).parents[2] / "schemas" / "releases.json").read_text()
    released = json.loads(text)["profiles"]
    for profile in PROFILES:
        apis = {int(key): tuple(range_) for key, range_ in released[profile.name]["apis"].items()}
        assert {key: apis[key] for key in profile.ranges} == dict(profile.ranges)
        assert profile.forwards == (released[profile.name]["mode"] == "kraft")
    numbered = [name for name in released if name.removeprefix("kafka-").replace(".", "").isdigit()]
    newest = max(numbered, key=lambda name: [int(part) for part in name[6:].split(".")])
    assert PROFILES[-1].name == newest


def test_the_releases_of_the_catalog_are_those_the_manifests_install():
    root = Path(__file__).parents[2]
    sources = root / "kspec" / "adapters"
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    packages = json.loads((sources / "node" / "package.json").read_text())["dependencies"]
    lock = (sources / "node" / "package-lock.json").read_text()
    modules = (sources / "go" / "go.mod").read_text()
    for each in CLIENTS:
        if each.language == "python":
            assert f"{each.name}=={each.release}" in extras["clients"]
        elif each.language == "node":
            assert packages[each.name] == each.release
        elif each.language == "go":
            assert f"/{each.name} {each.release}\n" in modules
    # Whoever installs says which registry it is from.
    assert "resolved" not in lock


def test_client_names_are_unique_and_every_gap_has_a_reason():
    assert len({each.name for each in CLIENTS}) == len(CLIENTS)
    assert all(why for each in CLIENTS for why in each.lacks.values())
    # A client without the guard says so; one that has it says what it does on an old broker.
    assert all((each.guard is None) == ("guard" in each.lacks) for each in CLIENTS)
