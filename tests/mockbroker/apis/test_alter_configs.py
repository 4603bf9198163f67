"""AlterConfigs (33): the answers and the configs afterwards are those of Kafka 3.9.2 and 4.4.0."""

import pytest

from mockbroker.simulation.cluster import Cluster
from tests.mockbroker.broker import DirectBroker
from tests.support.requests import request_of

TOPIC, BROKER, LOGGER = 2, 4, 8
TOPIC_SOURCE, BROKER_SOURCE, DEFAULT_BROKER_SOURCE = 1, 2, 3
THROTTLE = "leader.replication.throttled.rate"
PROFILES = ("kafka-3.9", "kafka-4.4")


class Asked(DirectBroker):
    """Broker 1 of a cluster with the topic foo, whose retention is 77 ms."""

    def __init__(self, profile: str) -> None:
        super().__init__(Cluster(topics=["foo=1,2"]), profile_name=profile)
        assert self.alter((TOPIC, "foo", {"retention.ms": "77"})) == [(0, None)]

    def alter(self, *resources, version: int = 2, **options) -> list[tuple[int, str | None]]:
        body = request_of(
            "AlterConfigs",
            resources=[
                {
                    "resource_type": kind,
                    "resource_name": name,
                    "configs": [{"name": n, "value": v} for n, v in dict(configs).items()],
                }
                for kind, name, configs in resources
            ],
            **options,
        )
        rows = self.ask(body, version).responses
        named = [(row.resource_type, row.resource_name) for row in rows]
        assert named == [(kind, name) for kind, name, _ in resources]
        return [(row.error_code, row.error_message) for row in rows]

    def operate(self, *resources) -> list[tuple[int, str | None]]:
        """The same of IncrementalAlterConfigs. Configs are (name, operation, value)."""
        body = request_of(
            "IncrementalAlterConfigs",
            resources=[
                {
                    "resource_type": kind,
                    "resource_name": name,
                    "configs": [
                        {"name": config, "config_operation": how, "value": value}
                        for config, how, value in configs
                    ],
                }
                for kind, name, *configs in resources
            ],
        )
        return [(row.error_code, row.error_message) for row in self.ask(body, 1).responses]

    def configs(self, kind: int = TOPIC, name: str = "foo") -> dict[str, str | None]:
        """The resource's own configs."""
        resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
        (result,) = self.ask("DescribeConfigs", 4, resources=[resource]).results
        own = {TOPIC: TOPIC_SOURCE, BROKER: BROKER_SOURCE if name else DEFAULT_BROKER_SOURCE}[kind]
        return {each.name: each.value for each in result.configs if each.config_source == own}


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.requirement("DP-API-33")
def test_configs_that_are_not_named_return_to_their_defaults(profile: str, version: int) -> None:
    asked = Asked(profile)
    change = (TOPIC, "foo", {"max.message.bytes": "1000"})
    assert asked.alter(change, version=version, validate_only=True) == [(0, None)]
    assert asked.configs() == {"retention.ms": "77"}
    assert asked.alter(change, version=version) == [(0, None)]
    assert asked.configs() == {"max.message.bytes": "1000"}
    assert asked.alter((TOPIC, "foo", {}), version=version) == [(0, None)]
    assert asked.configs() == {}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.requirement("DP-API-33")
def test_configs_of_brokers_are_replaced(profile: str) -> None:
    asked = Asked(profile)
    assert asked.alter((BROKER, "1", {THROTTLE: "55"}), (BROKER, "", {THROTTLE: "66"})) == [
        (0, None),
        (0, None),
    ]
    assert asked.configs(BROKER, "1") == {THROTTLE: "55"}
    assert asked.alter((BROKER, "1", {"nosuch": "2"})) == [(0, None)]
    assert asked.configs(BROKER, "1") == {"nosuch": None}  # shown without its value
    assert asked.configs(BROKER, "") == {THROTTLE: "66"}


@pytest.mark.parametrize(
    ("kind", "name", "configs", "answer"),
    [
        (TOPIC, "foo", {"retention.ms": None}, (42, "Null value not supported for : retention.ms")),
        (
            TOPIC, "foo", {"retention.ms": "x"},
            (40, "Invalid value x for configuration retention.ms: Not a number of type LONG"),
        ),
        (TOPIC, "foo", {"nope": "1"}, (40, "Unknown topic config name: nope")),
        (TOPIC, "nope", {"retention.ms": "1"}, (3, "The topic 'nope' does not exist.")),
        (TOPIC, "", {"retention.ms": "1"}, (42, "Default topic resources are not allowed.")),
        (BROKER, "2", {THROTTLE: "1"}, (42, "Unexpected broker id, expected 1, but received 2")),
        (BROKER, "x", {THROTTLE: "1"}, (42, "Node id must be an integer, but it is: x")),
        (BROKER, "x", {THROTTLE: None}, (42, f"Null value not supported for : {THROTTLE}")),
        (
            BROKER, "1", {THROTTLE: "y"},
            (42, f"Invalid value y for configuration {THROTTLE}: Not a number of type LONG"),
        ),
        (LOGGER, "1", {"kafka.server": "DEBUG"}, (42, "Unknown resource type 8")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.requirement("DP-API-33")
def test_a_refused_resource_keeps_its_configs(profile, kind, name, configs, answer):
    asked = Asked(profile)
    assert asked.alter((BROKER, "1", {THROTTLE: "9"})) == [(0, None)]
    assert asked.alter((kind, name, configs)) == [answer]
    assert asked.configs() == {"retention.ms": "77"}
    assert asked.configs(BROKER, "1") == {THROTTLE: "9"}


@pytest.mark.requirement("CONFIG-27")
@pytest.mark.parametrize("profile", PROFILES)
def test_an_operation_that_does_not_exist_fails_the_controller(profile: str) -> None:
    asked = Asked(profile)
    wrong, right = (TOPIC, "foo", ("retention.ms", -1, "5")), (BROKER, "", (THROTTLE, 0, "5"))
    logger, unknown = (LOGGER, "1", ("kafka", 0, "INFO")), (3, "foo", ("retention.ms", 0, "5"))
    codes = [code for code, _ in asked.operate(wrong, right, logger)]
    assert codes == [-1, -1, 0], "brokers change loggers themselves"
    assert asked.operate(wrong, unknown) == [(-1, None), (42, "Unknown resource type 3")]
    assert asked.configs() == {"retention.ms": "77"}
    assert asked.configs(BROKER, "") == {}


@pytest.mark.requirement("CONFIG-27")
@pytest.mark.parametrize("profile", PROFILES)
def test_an_operation_that_a_broker_refuses_fails_no_controller(profile: str) -> None:
    """The repetition is seen before the controller has the request."""
    asked = Asked(profile)
    twice = (TOPIC, "foo", ("retention.ms", 8, "5"), ("retention.ms", 8, "5"))
    right = (BROKER, "", (THROTTLE, 0, "5"))
    assert [code for code, _ in asked.operate(twice, right)] == [42, 0]
    assert asked.configs(BROKER, "") == {THROTTLE: "5"}


@pytest.mark.requirement("DP-API-33")
def test_a_resource_that_is_named_twice_is_refused() -> None:
    asked = Asked("kafka-4.4")
    refused = (42, "Each resource must appear at most once.")
    twice = [(TOPIC, "foo", {"retention.ms": str(ms)}) for ms in (1, 2)]
    assert asked.alter(*twice) == [refused, refused]
    assert asked.configs() == {"retention.ms": "77"}
