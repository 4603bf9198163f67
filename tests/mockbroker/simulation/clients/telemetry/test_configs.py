"""Subscriptions to clients' metrics as configs."""

import pytest

from kproto.error_codes import ErrorCode
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.support.requests import request_of

REFUSED, BAD, FAILED = (
    ErrorCode.INVALID_REQUEST,
    ErrorCode.INVALID_CONFIG,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


def broker(release: tuple[int, int] = (4, 4)) -> DirectBroker:
    name = f"kafka-{release[0]}.{release[1]}"
    return DirectBroker(simulated_cluster(1, release=release), profile_name=name)


def alter(
    at: DirectBroker, name: str, values: dict[str, str], *, how: int = 0
) -> tuple[int, str | None]:
    resource = {
        "resource_type": 16,
        "resource_name": name,
        "configs": [
            {"name": key, "config_operation": how, "value": value} for key, value in values.items()
        ],
    }
    (result,) = at.ask("IncrementalAlterConfigs", 1, resources=[resource]).responses
    return result.error_code, result.error_message


def refusal(
    values: dict[str, str], release: tuple[int, int] = (4, 4), name: str = "s"
) -> tuple[int, str | None]:
    at = broker(release)
    found = alter(at, name, values)
    assert bool(at.cluster.telemetry.subscription_names()) == (found[0] == 0)
    return found


@pytest.mark.requirement("TELEM-01")
def test_a_subscription_has_a_name() -> None:
    assert refusal({"metrics": "*"}, name="") == (REFUSED, "Subscription name can't be empty")


@pytest.mark.requirement("TELEM-02")
def test_unknown_configs() -> None:
    found = refusal({"metrics": "*", "push": "1"})
    assert found == (REFUSED, "Unknown client metrics configuration: push")


@pytest.mark.requirement("TELEM-03")
@pytest.mark.parametrize(
    ("name", "value", "other"), [("metrics", "a", "b"), ("match", "client_id=a", "client_id=b")]
)
def test_items_of_lists(name: str, value: str, other: str) -> None:
    twice = {name: f"{value},{other}, {value}"}
    assert refusal(twice) == (BAD, f"Configuration '{name}' values must not be duplicated.")
    assert refusal(twice, (4, 1))[0] == 0
    found = refusal({name: f"{value},,{other}"}, (4, 2))
    assert found == (BAD, f"Configuration '{name}' values must not be empty.")
    assert refusal({name: f"{value},,"}, (4, 1))[0] == (0 if name == "metrics" else BAD)


@pytest.mark.requirement("TELEM-04")
@pytest.mark.parametrize("value", ["x", "", "99999999999"])
def test_the_interval_is_a_number(value: str) -> None:
    text = f"Invalid value {value} for configuration interval.ms: Not a number of type INT"
    assert refusal({"interval.ms": value}, (4, 0)) == (BAD, text)
    assert refusal({"interval.ms": value}, (3, 9)) == (FAILED, None)


@pytest.mark.requirement("TELEM-04")
def test_spaces_around_the_interval() -> None:
    assert refusal({"interval.ms": " 100 "}, (3, 9)) == (FAILED, None)
    assert refusal({"interval.ms": " 100 "}, (4, 0))[0] == 0


@pytest.mark.requirement("TELEM-05")
def test_the_range_of_the_interval() -> None:
    for value in (99, 3_600_001, -5):
        assert refusal({"interval.ms": str(value)}) == (
            REFUSED,
            f"Invalid value {value} for interval.ms, interval must be between 100 and 3600000 "
            "(1 hour)",
        )
    for value in (100, 3_600_000):
        assert refusal({"interval.ms": str(value)})[0] == 0


@pytest.mark.requirement("TELEM-06")
@pytest.mark.parametrize(
    "pattern", ["client", "client_id=", "color=red", "client_id=(", "client_id=a=b"]
)
def test_illegal_patterns(pattern: str) -> None:
    text = f"Illegal client matching pattern: {pattern}"
    assert refusal({"match": f"client_id=a,{pattern}"}) == (BAD, text)


@pytest.mark.requirement("TELEM-06")
def test_an_empty_match() -> None:
    assert refusal({"match": ""}, (4, 0))[0] == 0
    assert refusal({"match": ""}, (3, 9)) == (BAD, "Illegal client matching pattern: ")
    assert refusal({"match": " client_id = a "})[0] == 0
    for release, named in (((3, 9), " x "), ((4, 0), "x")):
        text = f"Illegal client matching pattern: {named}"
        assert refusal({"match": "client_id=a, x "}, release) == (BAD, text)


def test_nothing_is_appended() -> None:
    code, text = alter(broker(), "s", {"metrics": "a"}, how=2)
    assert (code, text) == (BAD, "Can't APPEND to key metrics because its type is not LIST.")


def test_a_release_without_subscriptions() -> None:
    assert refusal({"metrics": "*"}, (3, 6)) == (REFUSED, "Unknown resource type 16")


@pytest.mark.requirement("TELEM-07")
def test_describing_and_listing() -> None:
    def described(at: DirectBroker) -> list[tuple[str, str, int, int]]:
        resource = {"resource_type": 16, "resource_name": "s"}
        (result,) = at.ask("DescribeConfigs", 4, resources=[resource]).results
        assert result.error_code == 0
        return [(c.name, c.value, c.config_source, c.config_type) for c in result.configs]

    at, old = broker(), broker((4, 0))
    for each in (at, old):
        assert alter(each, "s", {"interval.ms": "200", "metrics": "a, b"})[0] == 0
    assert described(at) == [
        ("interval.ms", "200", 7, 3), ("match", "", 5, 7), ("metrics", "a,b", 7, 7)
    ]  # fmt: skip
    assert described(old) == [("interval.ms", "200", 7, 0), ("metrics", "a, b", 7, 0)]
    listed = at.ask("ListConfigResources", 1, resource_types=[16]).config_resources
    assert [(each.resource_type, each.resource_name) for each in listed] == [(16, "s")]
    assert alter(at, "s", {"interval.ms": "", "metrics": ""}, how=1)[0] == 0
    assert at.ask("ListConfigResources", 1, resource_types=[16]).config_resources == []


@pytest.mark.requirement("TELEM-07")
def test_describing_needs_a_name_and_a_release() -> None:
    resource = {"resource_type": 16, "resource_name": ""}
    request = request_of("DescribeConfigs", resources=[resource])
    (result,) = broker().ask(request, 4).results
    assert result.error_code == REFUSED
    assert result.error_message == "Client metrics subscription name must not be empty"
    (result,) = broker((3, 6)).ask(request, 4).results
    assert result.error_code == REFUSED
