"""SASL on the mock's listeners, byte by byte: what is served before, during and after, how it says
no, and what the journal keeps. Texts are those that Kafka 4.4 was seen to send."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client import SaslScram
from kproto.framing import encode_frame
from kproto.journal import Journal, JournalWriter, read_journal
from kproto.messages import SaslAuthenticateResponse, SaslHandshakeResponse
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.simulation.security.authorizer import Authorizer
from mockbroker.simulation.security.sasl import MECHANISMS, SaslRefusedError, SaslUsers, redact
from tests.mockbroker.wire import Wire, connect
from tests.support.requests import request_of

PASSWORD = "pencil"
USERS = tuple(f"{mechanism}:alice:{PASSWORD}" for mechanism in MECHANISMS)
CREDENTIALS = f"\0alice\0{PASSWORD}".encode()
SCRAM = "SCRAM-SHA-256"
SCRAM_REFUSED = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism "
    + SCRAM
)


@asynccontextmanager
async def wired(users: tuple[str, ...] = USERS) -> AsyncIterator[tuple[MockCluster, Wire]]:
    async with MockCluster(1, topics=["foo=1"], sasl=users) as mock, connect(mock) as wire:
        yield mock, wire


async def shake(wire: Wire, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
    answer: SaslHandshakeResponse = await wire.ask("SaslHandshake", version, mechanism=mechanism)
    return answer


async def token(wire: Wire, data: bytes, version: int = 2) -> SaslAuthenticateResponse:
    answer: SaslAuthenticateResponse = await wire.ask("SaslAuthenticate", version, auth_bytes=data)
    return answer


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_plain(version: int) -> None:
    async with wired() as (mock, wire):
        assert (await wire.ask("ApiVersions", 0)).error_code == 0
        answer = await shake(wire, "PLAIN")
        assert (answer.error_code, answer.mechanisms) == (0, list(MECHANISMS))
        said = await token(wire, CREDENTIALS, version)
        assert (said.error_code, said.error_message, said.auth_bytes) == (0, "", b"")
        assert said.session_lifetime_ms == 0
        assert await wire.lists("foo")
        (entry,) = mock.journal.select(event="authenticated")
        assert entry.note == "User:alice"


@pytest.mark.parametrize("mechanism", MECHANISMS[1:])
async def test_scram(mechanism: str) -> None:
    async with wired() as (_, wire):
        await shake(wire, mechanism)
        step = SaslScram(mechanism, "alice", PASSWORD).exchange()
        final = step((await token(wire, step(b"") or b"")).auth_bytes)
        assert final is not None
        last = await token(wire, final)
        # The broker proves that it knows the password, or this raises.
        assert step(last.auth_bytes) is None
        assert await wire.lists("foo")


@pytest.mark.parametrize("mechanism", ["PLAIN", SCRAM])
async def test_raw_tokens_after_the_older_handshake(mechanism: str) -> None:
    async with wired() as (_, wire):
        assert (await shake(wire, mechanism, 0)).error_code == 0
        step = SaslScram(SCRAM, "alice", PASSWORD).exchange()
        said = step(b"") if mechanism == SCRAM else CREDENTIALS
        while said is not None:
            wire.send(encode_frame(said))
            heard = (await wire.receive())[4:]
            said = step(heard) if mechanism == SCRAM else None
        assert await wire.lists("foo")


@pytest.mark.parametrize("bad", [b"\0alice\0wrong", b"", b"\0\0\0\0", b"\xff" * 20])
async def test_a_wrong_raw_token_closes_without_a_word(bad: bytes) -> None:
    async with wired() as (mock, wire):
        await shake(wire, "PLAIN", 0)
        wire.send(encode_frame(bad))
        assert await wire.closed() == b""
        assert mock.journal.select(event="authentication-failed")


PLAIN_REFUSALS = [
    (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
    (b"\0mallory\0pencil", "Authentication failed: Invalid username or password"),
    (b"\xff\0\xff\0\xff", "Authentication failed: Invalid username or password"),
    (b"\0alice\0", "Authentication failed: password not specified"),
    (b"\0\0pencil", "Authentication failed: username not specified"),
    (
        b"bob" + CREDENTIALS,
        "Authentication failed: Client requested an authorization id that is different from "
        "username",
    ),
    (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
    (b"alice pencil", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
    (CREDENTIALS + b"\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
]


@pytest.mark.parametrize(("said", "text"), PLAIN_REFUSALS)
async def test_plain_refused(said: bytes, text: str) -> None:
    async with wired() as (_, wire):
        await shake(wire, "PLAIN")
        answer = await token(wire, said)
        assert (answer.error_code, answer.error_message, answer.auth_bytes) == (58, text, b"")
        assert await wire.closed() == b""


async def test_the_own_name_as_authorization_id() -> None:
    async with wired() as (_, wire):
        await shake(wire, "PLAIN")
        assert (await token(wire, b"alice" + CREDENTIALS)).error_code == 0


@pytest.mark.parametrize(
    ("first", "text"),
    [
        (b"n,,n=mallory,r=abc", SCRAM_REFUSED),
        (b"y,,n=alice,r=abc", SCRAM_REFUSED),
        (b"p=tls-unique,,n=alice,r=abc", SCRAM_REFUSED),
        (b"nonsense", SCRAM_REFUSED),
        (b"\xff", SCRAM_REFUSED),
        (
            b"n,a=bob,n=alice,r=abc",
            "Authentication failed: Client requested an authorization id that is different from "
            "username",
        ),
    ],
)
async def test_scram_refused_at_first(first: bytes, text: str) -> None:
    async with wired() as (_, wire):
        await shake(wire, SCRAM)
        answer = await token(wire, first)
        assert (answer.error_code, answer.error_message) == (58, text)
        assert await wire.closed() == b""


async def test_scram_refused_in_the_end() -> None:
    async with wired() as (_, wire):
        await shake(wire, SCRAM)
        step = SaslScram(SCRAM, "alice", "wrong").exchange()
        first = await token(wire, step(b"") or b"")
        assert first.error_code == 0
        answer = await token(wire, step(first.auth_bytes) or b"")
        assert (answer.error_code, answer.error_message) == (58, SCRAM_REFUSED)
        assert await wire.closed() == b""


async def test_a_mechanism_that_is_not_enabled() -> None:
    async with wired(("PLAIN:alice:pencil",)) as (_, wire):
        answer = await shake(wire, SCRAM)
        assert (answer.error_code, answer.mechanisms) == (33, ["PLAIN"])
        assert await wire.closed() == b""


@pytest.mark.parametrize(
    "too_early",
    [request_of("Metadata", topics=[]), request_of("SaslAuthenticate", auth_bytes=CREDENTIALS)],
)
async def test_nothing_else_is_served_before(too_early: object) -> None:
    async with wired() as (mock, wire):
        assert (await wire.ask("ApiVersions", 0)).error_code == 0
        wire.send(wire.frame(too_early, 1))
        assert await wire.closed() == b""
        assert not mock.journal.select(direction="response", api=3)


async def test_versions_are_told_once_before() -> None:
    """As brokers do. One that was refused for its version may ask again (KIP-511)."""
    async with wired() as (_, wire):
        too_new = bytearray(wire.frame(request_of("ApiVersions"), 3))
        too_new[6:8] = (99).to_bytes(2, "big")
        wire.send(bytes(too_new))
        await wire.receive()
        assert (await wire.ask("ApiVersions", 0)).error_code == 0
        wire.send(wire.frame(request_of("ApiVersions"), 0))
        assert await wire.closed() == b""


@pytest.mark.parametrize(
    ("asked", "version"),
    [
        (request_of("ApiVersions"), 0),
        (request_of("SaslHandshake", mechanism="PLAIN"), 1),
        (request_of("ListPartitionReassignments", topics=None), 0),
    ],
)
async def test_anything_else_in_between_is_an_illegal_state(asked: Any, version: int) -> None:
    async with wired() as (_, wire):
        await shake(wire, "PLAIN")
        assert (await wire.ask(asked, version)).error_code == 34
        assert await wire.closed() == b""


@pytest.mark.parametrize("said", [encode_frame(CREDENTIALS), encode_frame(b"\0x\0pw")])
async def test_a_raw_token_after_the_newer_handshake_closes(said: bytes) -> None:
    async with wired() as (mock, wire):
        await shake(wire, "PLAIN")
        wire.send(said)
        assert await wire.closed() == b""
        assert [entry for entry in mock.journal if b"pencil" in entry.raw] == []
        assert [entry for entry in mock.journal if b"pw" in entry.raw] == []


async def test_authenticating_again_is_an_illegal_state() -> None:
    async with wired() as (_, wire):
        await shake(wire, "PLAIN")
        await token(wire, CREDENTIALS)
        again = await shake(wire, "PLAIN")
        assert (again.error_code, again.mechanisms) == (34, [])
        said = await token(wire, CREDENTIALS)
        assert said.error_code == 34
        assert said.error_message == (
            "SaslAuthenticate request received after successful authentication"
        )
        assert await wire.lists("foo")


async def test_what_others_heard_is_not_heard_before_authenticating() -> None:
    """Answers are remembered by the bytes of their questions, for those who may ask."""
    async with wired() as (mock, wire):
        await shake(wire, "PLAIN")
        await token(wire, CREDENTIALS)
        assert await wire.lists("foo")
        async with connect(mock) as other:
            other.send(other.frame(request_of("Metadata", topics=None), 1))
            assert await other.closed() == b""


async def test_each_principal_gets_its_own_answer() -> None:
    users = ("PLAIN:alice:pencil", "PLAIN:admin:secret")
    authorizer = Authorizer(frozenset({"User:admin"}))
    async with (
        MockCluster(1, topics=["foo=1"], sasl=users, authorizer=authorizer) as mock,
        connect(mock) as admin, connect(mock) as alice,
    ):  # fmt: skip
        for wire, said in ((admin, b"\0admin\0secret"), (alice, CREDENTIALS)):
            await shake(wire, "PLAIN")
            await token(wire, said)
        everything = request_of("Metadata", topics=None)
        for _ in range(2):
            assert len((await admin.ask(everything, 1)).topics) == 1
            assert len((await alice.ask(everything, 1)).topics) == 0
        ask = request_of("ListPartitionReassignments", topics=None)
        assert [(await wire.ask(ask, 0)).error_code for wire in (admin, alice)] == [0, 31]


async def test_without_sasl_everybody_is_anonymous() -> None:
    ask = request_of("ListPartitionReassignments", topics=None)
    for principal, code in (("User:ANONYMOUS", 0), ("User:other", 31)):
        authorizer = Authorizer(frozenset({principal}))
        async with MockCluster(1, authorizer=authorizer) as mock, connect(mock) as wire:
            assert (await wire.ask(ask, 0)).error_code == code


# ---- the journal ---------------------------------------------------------------------------------


async def everything_said(written: StringIO) -> None:
    """A cluster whose journal is written down, and every way a password can reach it."""
    journal = Journal(sink=JournalWriter(written).write)
    async with MockCluster(1, sasl=("PLAIN:alice:pencil",), journal=journal) as mock:
        for handshake in (0, 1):
            for said in (CREDENTIALS, b"\0bob\0pencil", b"pencil", b"\0alice\0pencil\0pencil"):
                async with connect(mock) as wire:
                    await shake(wire, "PLAIN", handshake)
                    frame = wire.frame(request_of("SaslAuthenticate", auth_bytes=said), 2)
                    wire.send(frame if handshake else encode_frame(said))
                    if said is not CREDENTIALS:
                        await wire.closed()
                        continue
                    await wire.receive()
                    # Too late, and too much of it: neither is a reason to write it down.
                    wire.send(frame)
                    await wire.receive()
                    wire.send(encode_frame(frame[4:] + b"pencil"))
                    await wire.closed()
        async with connect(mock) as wire:
            await shake(wire, "PLAIN")
            too_new = bytearray(
                wire.frame(request_of("SaslAuthenticate", auth_bytes=CREDENTIALS), 2)
            )
            too_new[6:8] = (99).to_bytes(2, "big")
            wire.send(bytes(too_new))
            await wire.closed()
    async with MockCluster(1, journal=journal) as mock, connect(mock) as wire:
        assert (await token(wire, CREDENTIALS)).error_code == 34


async def test_no_password_is_written_down() -> None:
    written = StringIO()
    await everything_said(written)
    entries = list(read_journal(StringIO(written.getvalue())))
    assert [entry for entry in entries if b"pencil" in entry.raw or "pencil" in entry.note] == []
    asked = [e for e in entries if e.api_key == 36 and e.direction == "request" and e.raw]
    bodies = [entry.decode().body for entry in asked]
    # What is kept still decodes, and says who it was.
    assert None not in bodies
    assert b"\0alice\0[hidden]" in {body.auth_bytes for body in bodies}
    raw = [e.raw[4:] for e in entries if e.event == "sasl-token" and e.direction == "request"]
    assert raw[:3] == [b"\0alice\0[hidden]", b"\0bob\0[hidden]", b"[hidden]"]


async def test_scram_is_kept_as_it_was() -> None:
    async with wired() as (mock, wire):
        await shake(wire, SCRAM)
        await token(wire, b"n,,n=alice,r=abc")
        (entry,) = mock.journal.select(api=36, direction="request")
        assert entry.decode().body.auth_bytes == b"n,,n=alice,r=abc"


@given(secret=st.binary(), lead=st.binary())
def test_redacting_hides_all_behind_the_user(secret: bytes, lead: bytes) -> None:
    assert redact(b"\0user\0" + secret, "PLAIN") == b"\0user\0[hidden]"
    assert redact(b"\0user\0" + secret, None) == b"\0user\0[hidden]"
    whole = lead.replace(b"\0", b"") + b"x"
    assert redact(whole, "PLAIN") == b"[hidden]"
    assert redact(secret, SCRAM) == secret


# ---- users ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("GSSAPI:alice:pencil", "unknown SASL mechanism 'GSSAPI'"),
        ("pencil", "use MECHANISM:USER:PASSWORD"),
        ("PLAIN:alice", "PLAIN needs a user and a password"),
        ("PLAIN::pencil", "PLAIN needs a user and a password"),
        ("PLAIN:a\0b:pencil", "PLAIN needs a user and a password"),
    ],
)
def test_what_is_no_user(text: str, problem: str) -> None:
    with pytest.raises(ClusterError, match=problem) as caught:
        SaslUsers([text])
    assert text == "pencil" or "pencil" not in str(caught.value)


def test_a_password_may_hold_colons_and_a_mechanism_has_its_own() -> None:
    users = SaslUsers(["PLAIN:alice:a:b:c", "SCRAM-SHA-512:bob:x"])
    assert users.mechanisms == ("PLAIN", "SCRAM-SHA-512")
    assert users.exchange("PLAIN")(b"\0alice\0a:b:c") == (b"", "alice")
    with pytest.raises(SaslRefusedError):
        users.exchange("PLAIN")(b"\0bob\0x")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@given(tokens=st.lists(st.binary(max_size=60) | st.just(b"n,,n=alice,r=abc"), max_size=3))
def test_no_token_does_worse_than_be_refused(mechanism: str, tokens: list[bytes]) -> None:
    step = HYPOTHESIS_USERS.exchange(mechanism)
    for each in tokens:
        try:
            _, user = step(each)
        except SaslRefusedError:
            return
        assert user is None


HYPOTHESIS_USERS = SaslUsers(USERS)


async def test_a_failed_try_says_nothing_of_the_next_connection() -> None:
    async with wired() as (mock, wire):
        await shake(wire, "PLAIN")
        await token(wire, b"\0alice\0wrong")
        await wire.closed()
        async with connect(mock) as again:
            await shake(again, "PLAIN")
            await token(again, CREDENTIALS)
            assert await again.lists("foo")


@pytest.mark.parametrize("claimed", [1, 2**31 - 1])
def test_scrams_first_answer_claims_what_it_is_told_to(claimed: int) -> None:
    first = b"n,,n=alice,r=abc"
    honest, _ = SaslUsers(["SCRAM-SHA-256:alice:x"]).exchange("SCRAM-SHA-256")(first)
    assert honest.endswith(b",i=4096")
    liar = SaslUsers(["SCRAM-SHA-256:alice:x"], iterations=claimed).exchange("SCRAM-SHA-256")
    answer, user = liar(first)
    assert answer.endswith(f",i={claimed}".encode())
    assert user is None


def test_scrams_proof_can_be_another() -> None:
    import scramp

    client = scramp.ScramClient(["SCRAM-SHA-256"], "alice", "x")
    step = SaslUsers(["SCRAM-SHA-256:alice:x"], final="e=other-error").exchange("SCRAM-SHA-256")
    answer, _ = step(client.get_client_first().encode())
    client.set_server_first(answer.decode())
    assert step(client.get_client_final().encode()) == (b"e=other-error", "alice")
