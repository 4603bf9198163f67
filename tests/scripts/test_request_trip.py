"""How far a request travels is counted the same way each time."""

import json

import pytest

from scripts.request_trip import PROFILES, Trip, main, trace


def test_hops_are_calls_into_another_file() -> None:
    calls = (("a.py", "f"), ("a.py", "g"), ("b.py", "h"), ("a.py", "f"), ("a.py", "f"))
    trip = Trip("kafka-4.1", calls)
    assert (trip.hops, trip.files) == (2, {"a.py": 4, "b.py": 1})


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("api", "handler"), [("alter", "alter_partition_reassignments.py"), ("produce", "produce.py")]
)
def test_a_trip_begins_at_the_socket_and_is_the_same_twice(profile, api, handler):
    trip = trace(profile, api)
    assert trip.calls[0][1] == "data_received"
    assert any("journal" in file for file in trip.files)
    assert any(file.endswith(f"/apis/handlers/{handler}") for file in trip.files)
    assert not any(file.startswith("scripts") for file in trip.files)
    assert trace(profile, api) == trip


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--profile", "kafka-4.1", "--json"]) == 0
    (printed,) = json.loads(capsys.readouterr().out)
    assert printed == trace("kafka-4.1").to_dict()


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--profile", "kafka-4.1", "--list"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("kafka-4.1: ")
    assert first.endswith(" hops")
    assert len(rest) == len(trace("kafka-4.1").files)
