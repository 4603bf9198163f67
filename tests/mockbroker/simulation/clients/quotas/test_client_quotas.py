"""AlterClientQuotas and DescribeClientQuotas."""

import asyncio
import math
from collections.abc import Awaitable
from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from kproto.schema.versions import Versions
from mockbroker.serving.exchange import Outcome
from mockbroker.simulation.clients.quotas.client_quotas import Limit
from mockbroker.simulation.security.authorizer import Authorizer
from mockbroker.simulation.security.policy import OPEN, Security
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster

Names = dict[str, str | None]
REFUSED = ErrorCode.INVALID_REQUEST
ALICE: Names = {"user": "alice"}
RATE = "producer_byte_rate"


class QuotaBroker(DirectBroker):
    """Answers to clients that have a quota come from the event loop."""

    def send(self, frame: bytes, *, broker_id: int = 1) -> Outcome:
        outcome = super().send(frame, broker_id=broker_id)
        return asyncio.run(_waited(outcome)) if isinstance(outcome, Awaitable) else outcome


async def _waited(outcome: Awaitable[Any]) -> Outcome:
    found: Outcome = await outcome
    return found


def broker(release: tuple[int, int] = (4, 4), security: Security = OPEN) -> DirectBroker:
    name = f"kafka-{release[0]}.{release[1]}"
    return QuotaBroker(simulated_cluster(1, release=release), profile_name=name, security=security)


def in_zookeeper_mode(
    release: tuple[int, int] = (3, 9), profile: str = "kafka-3.9-zk"
) -> DirectBroker:
    cluster = simulated_cluster(1, reassignment="zookeeper", release=release)
    apis = dict.fromkeys((48, 49), Versions(0, 1))
    return QuotaBroker(cluster, profile_name=profile, apis=apis)


def entry(names: Names, *values: tuple[str, float | None]) -> Any:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in names.items()],
        "ops": [
            {"key": key, "value": value or 0.0, "remove": value is None} for key, value in values
        ],
    }


def alter(
    at: DirectBroker, *entries: Any, validate_only: bool = False
) -> list[tuple[int, str | None]]:
    answer = at.ask("AlterClientQuotas", 1, entries=entries, validate_only=validate_only)
    return [(each.error_code, each.error_message) for each in answer.entries]


def one(at: DirectBroker, names: Names, *values: tuple[str, float | None]) -> str | None:
    """The text of a refusal, after which nothing has changed; None for a success."""
    length = len(at.cluster.log)
    ((code, text),) = alter(at, entry(names, *values or ((RATE, 1.0),)))
    if code:
        assert code == REFUSED
        assert len(at.cluster.log) == length
        assert text
    else:
        assert text is None
    return text


def describe(
    at: DirectBroker, *parts: tuple[str, int, str | None], strict: bool = False
) -> dict[tuple[tuple[str, str | None], ...], dict[str, float]]:
    components = [
        {"entity_type": kind, "match_type": how, "match": match} for kind, how, match in parts
    ]
    answer = at.ask("DescribeClientQuotas", 1, components=components, strict=strict)
    assert (answer.error_code, answer.error_message) == (0, "")
    return {
        tuple((name.entity_type, name.entity_name) for name in each.entity): {
            value.key: value.value for value in each.values
        }
        for each in answer.entries
    }


def refusal(
    at: DirectBroker, *parts: tuple[str, int, str | None], strict: bool = False
) -> tuple[int, str | None]:
    components = [
        {"entity_type": kind, "match_type": how, "match": match} for kind, how, match in parts
    ]
    answer = at.ask("DescribeClientQuotas", 0, components=components, strict=strict)
    assert answer.entries is None
    return answer.error_code, answer.error_message


@pytest.mark.requirement("QUOTA-01")
def test_nothing_is_named_twice() -> None:
    at = broker()
    text = "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})"
    assert one(at, ALICE, (RATE, 1.0), (RATE, 2.0)) == text
    assert alter(at, entry(ALICE, (RATE, 1.0)), entry(ALICE, (RATE, 2.0))) == [(REFUSED, text)]
    # What comes before the repetition is carried out.
    assert describe(at) == {(("user", "alice"),): {RATE: 1.0}}
    both: Names = {"client-id": None, "user": "alice"}
    shown = "ClientQuotaEntity(entries={client-id=null, user=alice})"
    assert one(at, both, (RATE, 1.0), (RATE, 1.0)) == f"Ignoring duplicate entity {shown}"


@pytest.mark.requirement("QUOTA-02", "QUOTA-03")
def test_entities_have_types_and_names() -> None:
    at = broker()
    assert one(at, {}) == "Invalid empty client quota entity"
    assert one(at, {"other": "a"}) == "Unhandled client quota entity type: other"
    assert one(at, {"client-id": ""}) == "Empty client-id not supported"
    assert one(at, {"client-id": None}) is None


@pytest.mark.requirement("QUOTA-04")
def test_addresses() -> None:
    at = broker()
    rate = ("connection_creation_rate", 1.0)
    combination = (
        "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
    )
    assert one(at, {"ip": "1.2.3.4", "user": "a"}, rate) == combination
    preview = "Invalid empty client quota entity"
    assert one(broker((2, 8)), {"ip": "1.2.3.4", "user": "a"}, rate) == preview
    assert one(broker((3, 0)), {"ip": "1.2.3.4", "user": "a"}, rate) == combination
    assert one(at, {"ip": "1.2.3.400"}, rate) == "1.2.3.400 is not a valid IP or resolvable host."
    for name in ("1.2.3.4", "::1", "localhost", None):
        assert one(at, {"ip": name}, rate) is None


@pytest.mark.requirement("QUOTA-05")
@pytest.mark.parametrize(
    ("keys", "named"),
    [("k196 k734 k481 k553 k856", "k553"), ("k843 k886", "k843"), ("k730 k671 k216", "k730")],
)
def test_the_key_that_is_named_comes_first_in_a_map_of_all_keys(keys: str, named: str) -> None:
    """As Kafka 3.9.2 and 4.4.0 with KRaft answered."""
    values = [(key, 1.0) for key in keys.split()]
    assert one(broker(), ALICE, *values) == f"Invalid configuration key {named}"


@pytest.mark.requirement("QUOTA-05")
def test_each_kind_of_entity_has_its_quotas() -> None:
    at = broker()
    connections = "connection_creation_rate"
    assert one(at, ALICE, (connections, 1.0)) == f"Invalid configuration key {connections}"
    assert one(at, {"ip": "1.2.3.4"}, (RATE, 1.0)) == f"Invalid configuration key {RATE}"
    keys = (RATE, "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
    for key in keys:
        assert one(at, ALICE, (key, 1.0)) is None


@pytest.mark.requirement("QUOTA-06")
def test_quotas_are_positive_numbers() -> None:
    for value in (0.0, -0.5):
        text = one(broker(), ALICE, ("request_percentage", value))
        assert text == "Quota request_percentage must be greater than 0"
    infinite = ("request_percentage", math.inf)
    assert one(broker(), ALICE, infinite) == "Quota request_percentage must be a finite number"
    assert one(broker((4, 3)), ALICE, infinite) is None


@pytest.mark.requirement("QUOTA-07")
def test_whole_quotas() -> None:
    at = broker()
    assert one(at, ALICE, (RATE, 1.5)) == f"{RATE} cannot be a fractional value."
    assert one(at, ALICE, ("request_percentage", 1.5)) is None
    assert one(at, ALICE, (RATE, 1e19)) == f"Proposed value for {RATE} is too large for a LONG."
    assert one(at, ALICE, (RATE, 2.0**63)) is None
    key = "connection_creation_rate"
    text = one(at, {"ip": None}, (key, 2.0**31))
    assert text == f"Proposed value for {key} is too large for an INT."
    assert one(at, {"ip": None}, (key, 2.0**31 - 1)) is None


@pytest.mark.requirement("QUOTA-12")
def test_an_entity_changes_together_or_not_at_all() -> None:
    at = broker()
    assert one(at, ALICE, (RATE, 1.0), ("nothing", 1.0)) is not None
    assert describe(at) == {}
    results = alter(at, entry(ALICE, (RATE, 0.0)), entry({"user": "bob"}, (RATE, 2.0)))
    assert [code for code, _ in results] == [REFUSED, 0]
    assert describe(at) == {(("user", "bob"),): {RATE: 2.0}}
    assert alter(at, entry({"user": "bob"}, (RATE, 3.0)), validate_only=True) == [(0, None)]
    assert describe(at) == {(("user", "bob"),): {RATE: 2.0}}
    assert one(at, {"user": "bob"}, (RATE, None), ("consumer_byte_rate", 4.0)) is None
    assert describe(at) == {(("user", "bob"),): {"consumer_byte_rate": 4.0}}
    assert one(at, {"user": "bob"}, (RATE, None), ("consumer_byte_rate", None)) is None
    assert describe(at) == {}
    cluster = at.cluster
    assert replay(cluster.state.cluster_id, cluster.log).quotas == {}


@pytest.mark.requirement("QUOTA-08")
def test_components_have_known_types_once() -> None:
    at = broker()
    assert refusal(at, ("", 0, None)) == (REFUSED, "Invalid empty entity type.")
    twice = "Entity type user cannot appear more than once in the filter."
    assert refusal(at, ("user", 0, "a"), ("user", 2, None)) == (REFUSED, twice)
    unknown = (ErrorCode.UNSUPPORTED_VERSION, "Unsupported entity type other")
    assert refusal(at, ("other", 7, None)) == unknown


@pytest.mark.requirement("QUOTA-09")
@pytest.mark.parametrize(
    ("how", "match", "text"),
    [
        (0, None, "Request specified MATCH_TYPE_EXACT, but set match string to null."),
        (1, "a", "Request specified MATCH_TYPE_DEFAULT, but also specified a match string."),
        (2, "a", "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string."),
        (3, None, "Unknown match type 3"),
        (-1, "a", "Unknown match type -1"),
    ],
)
def test_match_types(how: int, match: str | None, text: str) -> None:
    assert refusal(broker(), ("user", how, match)) == (REFUSED, text)


@pytest.mark.requirement("QUOTA-10")
def test_a_filter_does_not_combine_addresses() -> None:
    text = (
        "Invalid entity filter component combination. IP filter component should not be used with "
        "user or clientId filter component."
    )
    for other in ("user", "client-id"):
        assert refusal(broker(), (other, 2, None), ("ip", 0, "a")) == (REFUSED, text)
    assert describe(broker(), ("ip", 0, "a")) == {}


@pytest.mark.requirement("QUOTA-11")
def test_filters() -> None:
    at = broker()
    entities: dict[str, Names] = {
        "alice": ALICE,
        "alice c": {"client-id": "c", "user": "alice"},
        "alice *": {"client-id": None, "user": "alice"},
        "*": {"user": None},
        "c": {"client-id": "c"},
    }
    for names in entities.values():
        assert one(at, names) is None

    def found(*parts: tuple[str, int, str | None], strict: bool = False) -> set[str]:
        shown = describe(at, *parts, strict=strict)
        by_names = {tuple(sorted(names.items())): name for name, names in entities.items()}
        return {by_names[key] for key in shown}

    assert found() == set(entities)
    assert found(strict=True) == set()
    assert found(("user", 0, "alice")) == {"alice", "alice c", "alice *"}
    assert found(("user", 0, "alice"), strict=True) == {"alice"}
    assert found(("user", 1, None)) == {"*"}
    assert found(("user", 2, None)) == {"alice", "alice c", "alice *", "*"}
    assert found(("user", 2, None), ("client-id", 1, None)) == {"alice *"}
    assert found(("client-id", 0, "c"), strict=True) == {"c"}
    assert found(("ip", 2, None)) == set()


@pytest.mark.requirement("QUOTA-13")
def test_the_most_specific_entity_decides() -> None:
    at = broker()
    quotas = at.cluster.quotas
    both, user, client = ("alice", "c"), ("alice", ""), ("", "c")
    order: list[tuple[Names, tuple[str, str]]] = [
        ({"client-id": None}, client),
        ({"client-id": "c"}, client),
        ({"user": None}, user),
        ({"client-id": None, "user": None}, both),
        ({"client-id": "c", "user": None}, both),
        (ALICE, user),
        ({"client-id": None, "user": "alice"}, both),
        ({"client-id": "c", "user": "alice"}, both),
    ]
    assert quotas.limit(RATE, "alice", "c") is None
    for number, (names, shared) in enumerate(order, 1):
        assert one(at, names, (RATE, float(number))) is None
        assert quotas.limit(RATE, "alice", "c") == Limit(number, *shared)
        assert quotas.limit("consumer_byte_rate", "alice", "c") is None
    assert quotas.limit(RATE, "bob", "d") == Limit(4, "bob", "d")


def test_quotas_need_rights() -> None:
    at = broker(security=Security(authorizer=Authorizer(frozenset())))
    denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert refusal(at, ("user", 0, "a"))[0] == denied
    ((code, _),) = alter(at, entry(ALICE, (RATE, 1.0)))
    assert code == denied


@pytest.mark.requirement("QUOTA-24")
def test_zookeeper_mode_checks_that_values_are_whole() -> None:
    at = in_zookeeper_mode()
    for value in (-1.0, 0.5, 1e30):
        assert one(at, ALICE, (RATE, value)) == f"Configuration {RATE} must be a LONG value"
    connections = ("connection_creation_rate", 0.5)
    text = "Configuration connection_creation_rate must be a INT value"
    assert one(at, {"ip": "1.2.3.4"}, connections) == text
    for value in (-1.0, 0.0, 0.5):
        assert one(at, ALICE, ("request_percentage", value)) is None
    # Of what is named twice, the last one counts.
    assert one(at, ALICE, (RATE, 1.0), (RATE, 0.0)) is None
    assert describe(at) == {(("user", "alice"),): {RATE: 0.0, "request_percentage": 0.5}}
    combination = (
        "Invalid quota entity combination, IP entity should not be used with user/client ID entity."
    )
    assert one(at, {"ip": "1.2.3.4", "user": "a"}) == combination


@pytest.mark.requirement("QUOTA-23")
def test_kraft_checked_only_that_values_are_whole_before_3_5() -> None:
    at = broker((3, 4))
    for value in (-1.0, 0.5, 1e30):
        assert one(at, ALICE, (RATE, value)) == f"Configuration {RATE} must be a Long value"
    for value in (0.0, 1e18):
        assert one(at, ALICE, (RATE, value)) is None
    for value in (-1.0, 0.0, 0.5):
        assert one(at, ALICE, ("controller_mutation_rate", value)) is None
    for value in (0.0, 1e12):
        assert one(at, {"ip": "1.2.3.4"}, ("connection_creation_rate", value)) is None
    assert one(broker((3, 5)), ALICE, (RATE, 0.0)) == f"Quota {RATE} must be greater than 0"


@pytest.mark.requirement("QUOTA-24")
@pytest.mark.parametrize(
    ("parts", "code", "text"),
    [
        ([("user", 0, None)], -1, None),
        ([("other", 0, "a"), ("user", 3, "a")], -1, None),
        ([("", 0, "a")], 42, "Unexpected empty filter component entity type"),
        ([("other", 0, "a")], 35, "Custom entity type 'other' not supported"),
        (
            [("client-id", 0, "a"), ("client-id", 2, None)],
            42,
            "Duplicate client filter component entity type",
        ),
        (
            [("ip", 0, "::1"), ("user", 0, "a")],
            42,
            "Invalid entity filter component combination, IP filter component should not be used "
            "with user or clientId filter component.",
        ),
    ],
)
def test_filters_in_zookeeper_mode(parts, code, text):
    assert refusal(in_zookeeper_mode(), *parts) == (code, text)


@pytest.mark.requirement("QUOTA-24")
def test_names_that_no_znode_can_have() -> None:
    at = in_zookeeper_mode()
    failed = (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    for names in ({"user": "."}, {"client-id": ".."}, {"user": "a", "client-id": "."}):
        assert alter(at, entry(names, (RATE, 1.0), ("none", 1.0))) == [failed]
        assert one(broker(), names, (RATE, 1.0)) is None
    both = ("user", 0, "."), ("client-id", 1, None)
    assert refusal(at, *both) == failed
    for name in ("..", ""):
        assert refusal(at, ("ip", 0, name)) == failed
    assert refusal(at, both[0], strict=True) == failed
    assert describe(at, both[0]) == describe(at, ("user", 0, "a"), both[1]) == {}
    assert describe(broker(), *both) == {}


@pytest.mark.requirement("QUOTA-24")
def test_zookeeper_mode_takes_any_match_of_a_default() -> None:
    at = in_zookeeper_mode()
    assert one(at, {"user": None}, (RATE, 1.0)) is None
    assert describe(at, ("user", 1, "a")) == describe(at, ("user", 2, "a"))
    assert describe(at, ("user", 1, "a")) == {(("user", None),): {RATE: 1.0}}


@pytest.mark.requirement("QUOTA-22")
def test_addresses_have_quotas_since_2_8() -> None:
    at = in_zookeeper_mode((2, 7), "kafka-2.7")
    assert one(at, {"ip": "1.2.3.4"}) == "Unhandled client quota entity type: ip"
    assert one(at, ALICE, (RATE, 0.5)) == f"Configuration {RATE} must be a Long value"
    unsupported = (ErrorCode.UNSUPPORTED_VERSION, "Custom entity type 'ip' not supported")
    assert refusal(at, ("ip", 0, "1.2.3.4")) == unsupported
    assert at.ask("DescribeClientQuotas", 0, components=[]).error_message is None
    at = in_zookeeper_mode((2, 8), "kafka-2.8-zk")
    assert one(at, {"ip": "1.2.3.4"}, ("connection_creation_rate", 1.0)) is None
    assert list(describe(at, ("ip", 0, "1.2.3.4"))) == [(("ip", "1.2.3.4"),)]
