"""Sessions over client quotas (48, 49) and SCRAM credentials (50, 51), each of its own entities."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any

from kproto.messages import (
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    DescribeClientQuotasRequest,
    DescribeUserScramCredentialsRequest,
)
from kproto.messages.alter_client_quotas_request import EntityData, EntryData, OpData
from kproto.messages.alter_user_scram_credentials_request import (
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kproto.messages.describe_client_quotas_request import ComponentData
from kproto.messages.describe_user_scram_credentials_request import UserName
from tests.real.data.registry import session
from tests.real.data.side import PATIENCE, POLL_SECONDS, Failed, Side

Names = dict[str, str | None]
_PAIRS: tuple[tuple[int, str | None], ...] = (
    (0, "x"), (0, None), (1, None), (1, "x"), (2, None), (2, "x"), (3, None), (-1, "x"),
)  # fmt: skip


def _entry(names: Names, *values: tuple[str, float | None]) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values],
    )


async def _alter(k: Side, *entries: EntryData, validate_only: bool = False) -> None:
    """Every broker forwards to the controller, and the first one is where quotas are read."""
    await k.ask(
        AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only), broker=1
    )


async def _until(k: Side, body: Any, api_key: int, fits: Callable[[Any], bool]) -> None:
    """Wait until the broker that answers has read what the controller wrote."""
    deadline = time.monotonic() + PATIENCE
    version = k.version_of(api_key)
    while not fits(await k.exchange(body, version, 1, "main")):
        if time.monotonic() > deadline:
            raise Failed("the broker does not show the change")
        await asyncio.sleep(POLL_SECONDS)


async def _until_quota(k: Side, names: Names, key: str, value: float | None) -> None:
    """Wait until the entity has the quota."""
    parts = [
        ComponentData(entity_type=kind, match_type=1 if name is None else 0, match=name)
        for kind, name in names.items()
    ]

    def fits(answer: Any) -> bool:
        found = {each.key: each.value for entry in answer.entries for each in entry.values}
        return found.get(key) == value

    await _until(k, DescribeClientQuotasRequest(components=parts, strict=True), 48, fits)


async def _until_credentials(k: Side, user: str, *mechanisms: int) -> None:
    """Wait until a user has credentials for exactly these mechanisms."""
    body = DescribeUserScramCredentialsRequest(users=[UserName(name=user)])

    def fits(answer: Any) -> bool:
        (result,) = answer.results
        return {each.mechanism for each in result.credential_infos} == set(mechanisms)

    await _until(k, body, 50, fits)


async def _describe(k: Side, *parts: tuple[str, int, str | None], strict: bool = False) -> None:
    components = [
        ComponentData(entity_type=kind, match_type=how, match=match) for kind, how, match in parts
    ]
    await k.ask(DescribeClientQuotasRequest(components=components, strict=strict), broker=1)


@session(49, needs=(48,))
async def alter_quotas(k: Side) -> None:
    user, client = f"{k.group}.user", f"{k.group}.client"
    entities: tuple[Names, ...] = (
        {"user": user},
        {"client-id": client},
        {"user": user, "client-id": client},
        {"user": user, "client-id": None},
    )
    for number, names in enumerate(entities):
        await _alter(k, _entry(names, ("producer_byte_rate", 1000.0 + number)))
        await _until_quota(k, names, "producer_byte_rate", 1000.0 + number)
    await _alter(k, _entry({"user": user}, ("request_percentage", 0.5)), validate_only=True)
    await _describe(k, ("user", 0, user))
    await _describe(k, ("user", 0, user), strict=True)
    await _describe(k, ("user", 0, user), ("client-id", 1, None))
    await _describe(k, ("user", 0, user), ("client-id", 2, None))
    await _describe(k, ("client-id", 0, client))
    await _alter(
        k,
        _entry({"user": user}, ("producer_byte_rate", None), ("consumer_byte_rate", None)),
        _entry({"client-id": client}, ("producer_byte_rate", 5.0), ("consumer_byte_rate", 6.0)),
    )
    await _until_quota(k, {"user": user}, "producer_byte_rate", None)
    await _until_quota(k, {"client-id": client}, "consumer_byte_rate", 6.0)
    await _until_quota(k, {"client-id": client}, "producer_byte_rate", 5.0)
    await _describe(k, ("user", 0, user))
    await _describe(k, ("client-id", 0, client))
    await _alter(
        k,
        *(
            _entry(names, ("producer_byte_rate", None), ("consumer_byte_rate", None))
            for names in entities
        ),
    )


@session(49)
async def alter_wrong_quotas(k: Side) -> None:
    user = {"user": f"{k.group}.wrong"}
    for names in ({}, {"": "a"}, {"other": "a"}, {"user": ""}, {"ip": "1.2.3.4", "user": "a"},
                  {"ip": "1.2.3.400"}, {"client-id": ""}, {"ip": ""},
                  {"user": "", "client-id": ""}):  # fmt: skip
        entity: Names = dict(names)
        await _alter(k, _entry(entity, ("producer_byte_rate", 1.0)))
    for key, value in (
        ("producer_byte_rate", 0.0), ("producer_byte_rate", -1.0), ("producer_byte_rate", 0.5),
        ("consumer_byte_rate", 1e19), ("consumer_byte_rate", 2.0**63), ("request_percentage", 0.5),
        ("request_percentage", -0.5), ("controller_mutation_rate", 1.5), ("nothing", 1.0),
        ("connection_creation_rate", 1.0), ("request_percentage", math.inf),
        ("request_percentage", math.nan), ("producer_byte_rate", math.inf),
    ):  # fmt: skip
        await _alter(k, _entry(dict(user), (key, value)), validate_only=True)
    for value in (1.0, 1.5, 2.0**31, 0.0):
        names = {"ip": "10.0.0.1"}
        await _alter(
            k, _entry(dict(names), ("connection_creation_rate", value)), validate_only=True
        )
    await _alter(k, _entry({"ip": "10.0.0.1"}, ("producer_byte_rate", 1.0)), validate_only=True)
    await _alter(k, _entry({"ip": None}, ("connection_creation_rate", 1.0)), validate_only=True)


@session(49)
async def alter_quotas_twice(k: Side) -> None:
    user: Names = {"user": f"{k.group}.twice"}
    rate = ("producer_byte_rate", 1.0)
    await _alter(k, _entry(user, rate, rate))
    await _alter(k, _entry(user, rate), _entry(user, ("consumer_byte_rate", 1.0)))
    both: Names = {"client-id": None, "user": f"{k.group}.twice"}
    await _alter(k, _entry(both, rate, rate))
    await _alter(k)


@session(48)
async def describe_quotas_wrongly(k: Side) -> None:
    for kind in ("user", "client-id", "ip", "", "other"):
        for how, match in _PAIRS:
            if match is None and how in (1, 2):
                continue  # of all sessions
            await _describe(k, (kind, how, match))
    await _describe(k, ("user", 0, "a"), ("user", 0, "b"))
    await _describe(k, ("ip", 0, "a"), ("user", 0, "b"))
    await _describe(k, ("client-id", 2, None), ("ip", 0, "b"))


def _change(
    deletions: tuple[tuple[str, int], ...] = (),
    upsertions: tuple[tuple[str, int, int], ...] = (),
) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name=name, mechanism=kind) for name, kind in deletions],
        upsertions=[
            ScramCredentialUpsertion(
                name=name, mechanism=kind, iterations=count, salt=b"salt", salted_password=b"word"
            )
            for name, kind, count in upsertions
        ],
    )


async def _show(k: Side, *users: str) -> None:
    names = [UserName(name=user) for user in users]
    await k.ask(DescribeUserScramCredentialsRequest(users=names), broker=1)


@session(51, needs=(50,))
async def alter_credentials(k: Side) -> None:
    one, two = f"{k.group}.one", f"{k.group}.two"
    await k.ask(_change((), ((one, 1, 4096), (two, 2, 8192))), broker=1)
    await k.ask(_change((), ((one, 2, 16384),)), broker=1)
    await _until_credentials(k, one, 1, 2)
    await _show(k, one, two, f"{k.group}.three")
    await _show(k, one, one)
    await k.ask(_change(((one, 1),)), broker=1)
    await _until_credentials(k, one, 2)
    await _show(k, one)
    await k.ask(_change(((one, 1), (two, 2))), broker=1)
    await _until_credentials(k, two)
    await _show(k, one, two)
    await k.ask(_change(((one, 2),)), broker=1)


@session(51)
async def alter_wrong_credentials(k: Side) -> None:
    user = f"{k.group}.user"
    for change in (("", 1, 4096), ("", 0, 1), (user, 0, 4096), (user, 3, 1), (user, 1, 4095),
                   (user, 2, 16385), (user, 1, -1)):  # fmt: skip
        await k.ask(_change((), (change,)), broker=1)
    for deletion in (("", 1), (user, 1), (user, 0), (user, -1)):
        await k.ask(_change((deletion,)), broker=1)
    bare = _change((), ((user, 1, 4096),))
    bare.upsertions[0].salted_password = b""
    await k.ask(bare, broker=1)
    await _show(k, user)
    await k.ask(_change(((user, 1),), ((user, 1, 4096),)), broker=1)
    await k.ask(_change((), ((user, 1, 4096), (user, 2, 4096))), broker=1)
    await k.ask(_change((), ((user, 1, 4096), (user, 2, 4096), (user, 1, 4096))), broker=1)
    await k.ask(_change(), broker=1)


@session(50)
async def describe_unknown_credentials(k: Side) -> None:
    await _show(k, "")
    await _show(k, f"{k.group}.nobody", "nobody", "nobody")
