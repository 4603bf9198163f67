"""Stored SCRAM credentials: described, altered, and used to authenticate."""

import hashlib
from typing import Any

import pytest
import scramp

from kproto.error_codes import ErrorCode, message
from mockbroker import MockCluster
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.security.authorizer import Authorizer
from mockbroker.simulation.security.policy import OPEN, Security
from mockbroker.simulation.security.sasl import SaslRefusedError, SaslUsers
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

SHA_256, SHA_512 = 1, 2
SALT = b"twelve bytes"
_HASHES = {SHA_256: "sha256", SHA_512: "sha512"}
Results = list[tuple[str, int, str | None]]
TWICE = (
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request",
)  # fmt: skip


def broker(security: Security = OPEN) -> DirectBroker:
    return DirectBroker(Cluster(1), security=security)


def upsertion(
    user: str, mechanism: int = SHA_256, iterations: int = 4096, password: str = "secret"
) -> Any:
    salted = b""
    if mechanism in _HASHES and iterations > 0:
        salted = hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode(), SALT, iterations)
    return {
        "name": user,
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": SALT,
        "salted_password": salted,
    }


def request(*upsertions: Any, delete: tuple[tuple[str, int], ...] = ()) -> Any:
    return request_of(
        "AlterUserScramCredentials",
        upsertions=list(upsertions),
        deletions=[{"name": user, "mechanism": kind} for user, kind in delete],
    )


def alter(at: DirectBroker, *upsertions: Any, delete: tuple[tuple[str, int], ...] = ()) -> Results:
    answer = at.ask(request(*upsertions, delete=delete), 0)
    return [(each.user, each.error_code, each.error_message) for each in answer.results]


def described(at: DirectBroker, *users: str) -> dict[str, list[tuple[int, int]] | int]:
    names = [{"name": user} for user in users] or None
    answer = at.ask("DescribeUserScramCredentials", 0, users=names)
    assert (answer.error_code, answer.error_message) == (0, "")
    return {
        each.user: each.error_code
        or [(info.mechanism, info.iterations) for info in each.credential_infos]
        for each in answer.results
    }


@pytest.mark.requirement("SCRAM-01")
def test_a_user_is_altered_once() -> None:
    at = broker()
    assert alter(at, upsertion("a"), upsertion("a", SHA_512)) == [("a", *TWICE)]
    assert alter(at, upsertion("a"), upsertion("a"), upsertion("a")) == [("a", *TWICE)]
    assert described(at) == {}
    assert alter(at, upsertion("a")) == [("a", 0, None)]
    both = alter(at, upsertion("b"), upsertion("a", SHA_512), delete=(("a", SHA_256),))
    assert both == [("b", 0, None), ("a", *TWICE)]
    assert described(at) == {"a": [(SHA_256, 4096)], "b": [(SHA_256, 4096)]}


@pytest.mark.requirement("SCRAM-02", "SCRAM-03")
def test_users_and_mechanisms() -> None:
    at = broker()
    empty = ("", ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    assert alter(at, upsertion("", 0)) == alter(at, delete=(("", 0),)) == [empty]
    unknown = ("a", ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    assert alter(at, upsertion("a", 3)) == alter(at, delete=(("a", 0),)) == [unknown]


@pytest.mark.requirement("SCRAM-10")
def test_the_text_of_a_success_in_zookeeper_mode_is_empty() -> None:
    at = DirectBroker(simulated_cluster(1, reassignment="zookeeper", release=(3, 9)))
    assert alter(at, upsertion("a")) == [("a", 0, "")]
    assert alter(at, delete=(("a", SHA_256),)) == [("a", 0, "")]


@pytest.mark.requirement("SCRAM-11")
def test_what_zookeeper_mode_refuses() -> None:
    at = DirectBroker(simulated_cluster(1, reassignment="zookeeper", release=(3, 9)))
    both = (("a", SHA_256),)
    assert alter(at, upsertion("a"), upsertion("a", SHA_512)) == [("a", 0, "")]
    assert alter(at, upsertion("a", SHA_512), delete=both) == [("a", 0, "")]
    assert described(at, "a") == {"a": [(SHA_512, 4096)]}
    missing = [("a", ErrorCode.RESOURCE_NOT_FOUND)]
    assert [each[:2] for each in alter(at, upsertion("a", SHA_512), delete=both)] == missing
    assert alter(at, upsertion("a"), delete=both) == [("a", *TWICE)]
    unknown = [("a", ErrorCode.UNSUPPORTED_SASL_MECHANISM)]
    assert [each[:2] for each in alter(at, upsertion("a", 3), delete=both)] == unknown
    few, many = upsertion("a", SHA_256, 1), upsertion("a", SHA_256, 20_000)
    assert alter(at, few, many, delete=both)[0][2] == "Too many iterations"
    assert alter(at, many, few, delete=both)[0][2] == "Too few iterations"
    empty = upsertion("b")
    empty["salted_password"] = b""
    failure = ErrorCode.UNKNOWN_SERVER_ERROR
    assert alter(at, empty) == [("b", failure, message(failure))]
    assert alter(at, upsertion("."), upsertion("b")) == [(".", failure, None), ("b", failure, None)]
    assert described(at, ".", "..", "b") == {
        ".": failure, "..": failure, "b": ErrorCode.RESOURCE_NOT_FOUND,
    }  # fmt: skip
    nameless = request_of("DescribeUserScramCredentials", users=[{"name": ""}, {"name": ""}])
    (row,) = at.ask(nameless, 0).results
    assert (row.error_code, row.error_message) == (91, "Username must not be empty")
    assert described(at) == {"a": [(SHA_512, 4096)]}


@pytest.mark.requirement("SCRAM-04")
def test_only_what_exists_is_deleted() -> None:
    at = broker()
    alter(at, upsertion("a"))
    text = "Attempt to delete a user credential that does not exist"
    missing = ("a", ErrorCode.RESOURCE_NOT_FOUND, text)
    assert alter(at, delete=(("a", SHA_512),)) == [missing]
    assert alter(at, delete=(("a", SHA_256),)) == [("a", 0, None)]
    assert alter(at, delete=(("a", SHA_256),)) == [missing]
    cluster = at.cluster
    assert replay(cluster.state.cluster_id, cluster.log).scram == {}


@pytest.mark.requirement("SCRAM-05")
def test_iterations() -> None:
    at = broker()
    code = ErrorCode.UNACCEPTABLE_CREDENTIAL
    assert alter(at, upsertion("a", SHA_256, 4095)) == [("a", code, "Too few iterations")]
    assert alter(at, upsertion("a", SHA_512, 16385)) == [("a", code, "Too many iterations")]
    assert alter(at, upsertion("a", SHA_512, 16384)) == [("a", 0, None)]


@pytest.mark.requirement("SCRAM-09")
def test_a_salted_password_has_bytes() -> None:
    at = broker()
    empty, other = upsertion("a"), upsertion("b")
    empty["salted_password"] = b""
    failed = ("a", ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert alter(at, empty, other) == [failed, ("b", 0, None)]
    assert alter(at, empty, upsertion("a")) == [("a", *TWICE)]
    assert [user for user, _ in at.cluster.state.scram] == ["b"]
    empty["iterations"] = 1
    assert alter(at, empty)[0][2] == "Too few iterations"


@pytest.mark.requirement("SCRAM-06")
def test_describing_users() -> None:
    at = broker()
    alter(at, upsertion("a"), upsertion("b", SHA_512, 5000))
    alter(at, upsertion("a", SHA_512))
    everyone = {"a": [(SHA_256, 4096), (SHA_512, 4096)], "b": [(SHA_512, 5000)]}
    assert described(at) == everyone
    missing, twice = ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.DUPLICATE_RESOURCE
    assert described(at, "b", "c", "a", "a") == {"a": twice, "b": everyone["b"], "c": missing}
    answer = at.ask("DescribeUserScramCredentials", 0, name="c")
    text = "Attempt to describe a user credential that does not exist: c"
    assert answer.results[0].error_message == text
    names = [{"name": "c"}] * 2
    answer = at.ask("DescribeUserScramCredentials", 0, users=names)
    text = "Cannot describe SCRAM credentials for the same user twice in a single request: c"
    assert answer.results[0].error_message == text


def authenticates(users: SaslUsers, user: str, password: str, mechanism: str) -> bool:
    client = scramp.ScramClient([mechanism], user, password)
    step = users.exchange(mechanism)
    try:
        first, _ = step(client.get_client_first().encode())
        client.set_server_first(first.decode())
        final, name = step(client.get_client_final().encode())
    except SaslRefusedError:
        return False
    client.set_server_final(final.decode())
    return name == user


@pytest.mark.requirement("SCRAM-07")
def test_stored_credentials_authenticate() -> None:
    users = SaslUsers(["SCRAM-SHA-256:admin:old", "SCRAM-SHA-512:admin:old", "PLAIN:admin:old"])
    at = broker(Security(sasl=users))
    users.use_stored(at.cluster.scram)
    assert at.cluster.scram.describe(None)[0].credentials == ((SHA_256, 4096), (SHA_512, 4096))

    def change(*upsertions: Any, delete: tuple[tuple[str, int], ...] = ()) -> None:
        for result in alter(DirectBroker(at.cluster), *upsertions, delete=delete):
            assert result[1] == 0

    assert authenticates(users, "admin", "old", "SCRAM-SHA-256")
    assert not authenticates(users, "new", "secret", "SCRAM-SHA-256")
    change(upsertion("new"), upsertion("admin", SHA_512, 8192, "other"))
    assert authenticates(users, "new", "secret", "SCRAM-SHA-256")
    assert not authenticates(users, "new", "wrong", "SCRAM-SHA-256")
    assert not authenticates(users, "new", "secret", "SCRAM-SHA-512")
    assert authenticates(users, "admin", "other", "SCRAM-SHA-512")
    assert not authenticates(users, "admin", "old", "SCRAM-SHA-512")
    change(delete=(("admin", SHA_256),))
    assert not authenticates(users, "admin", "old", "SCRAM-SHA-256")


@pytest.mark.requirement("SCRAM-08")
async def test_the_journal_has_no_salted_password() -> None:
    async with MockCluster(1) as mock, connect(mock) as wire:
        sent = upsertion("a")
        assert (await wire.ask(request(sent), 0)).results[0].error_code == 0
        (entry,) = mock.journal.select(api=51, direction="request")
        assert sent["salted_password"] not in entry.raw
        kept = entry.decode().body
        assert kept is not None
        assert kept.upsertions[0].salted_password == b"[hidden]"
        assert mock.cluster.scram.keys("SCRAM-SHA-256", "a") is not None


def test_credentials_need_rights() -> None:
    at = broker(Security(authorizer=Authorizer(frozenset())))
    denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert [code for _, code, _ in alter(at, upsertion("a"))] == [denied]
    answer = at.ask("DescribeUserScramCredentials", 0, users=None)
    assert (answer.error_code, answer.results) == (denied, [])
