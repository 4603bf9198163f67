"""Defects about the content of answers and about reporting it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kproto.error_codes import ErrorCode
from kspec.adapter_protocol import empty_result
from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.link import Link
from kspec.reference_client.rules import Outcomes, outcome

__all__: list[str] = []

_KNOWN = frozenset(code.value for code in ErrorCode)


@defect("claims-success")
class ClaimsSuccess(Client):
    """Reports success whatever happened."""

    async def call(self, op: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A failure becomes an empty result of the call."""
        reply = await super().call(op, arguments)
        return {**reply, "result": empty_result(op)} if reply.get("result") == {} else reply

    def failure(self, error: Exception) -> dict[str, Any]:
        return self.success({})

    def outcomes(self, wanted: Sequence[str], rows: Outcomes) -> dict[str, Any]:
        return dict.fromkeys(wanted)


@defect("hides-the-error")
class HidesTheError(Client):
    """Reports that something went wrong but not what."""

    def failure(self, error: Exception) -> dict[str, Any]:
        return {"ok": False, "error": "Error", "code": None, "message": "something went wrong"}

    def outcomes(self, wanted: Sequence[str], rows: Outcomes) -> dict[str, Any]:
        found = super().outcomes(wanted, rows)
        return {key: each and self.failure(Exception()) for key, each in found.items()}


@defect("takes-unknown-codes-for-success")
class TakesUnknownCodesForSuccess(Client):
    """Treats unknown error codes as success."""

    def outcomes(self, wanted: Sequence[str], rows: Outcomes) -> dict[str, Any]:
        known = {key: row if row[0] in _KNOWN else (0, None) for key, row in rows.items()}
        return super().outcomes(wanted, known)


@defect("ignores-the-top-level-error")
class IgnoresTheTopLevelError(Client):
    """Reads the errors of partitions but not the top-level error."""

    async def ask(self, where: Any, body: Any, code_of: Any, *more: Any) -> Any:
        return await super().ask(where, body, lambda _answer: 0, *more)

    def outcomes(self, wanted: Sequence[str], rows: Outcomes) -> dict[str, Any]:
        return {key: super(IgnoresTheTopLevelError, self).outcomes([key], rows)[key]
                if key in rows else None for key in wanted}  # fmt: skip


@defect("one-outcome-for-all")
class OneOutcomeForAll(Client):
    """Gives every partition the outcome of the one that failed."""

    def outcomes(self, wanted: Sequence[str], rows: Outcomes) -> dict[str, Any]:
        found = super().outcomes(wanted, rows)
        first = next((each for each in found.values() if each is not None), None)
        return dict.fromkeys(found, first)


@defect("matches-by-position")
class MatchesByPosition(Client):
    """Assigns outcomes to partitions by position instead of by name."""

    def outcomes(self, wanted: Sequence[str], rows: Outcomes) -> dict[str, Any]:
        given = list(rows.values())
        found: dict[str, Any] = {}
        for place, key in enumerate(wanted):
            code, message = given[place] if place < len(given) else (0, None)
            found[key] = outcome(code, message) if code else None
        return found


@defect("forgets-who-was-left-out")
class ForgetsWhoWasLeftOut(Client):
    """Treats a partition that the answer omits as successful."""

    def outcomes(self, wanted: Sequence[str], rows: Outcomes) -> dict[str, Any]:
        return {key: None for key in wanted if key not in rows} | super().outcomes(
            [key for key in wanted if key in rows], rows
        )


@defect("takes-everything-for-nothing")
class TakesEverythingForNothing(Link):
    """Sends an empty list where null asks for everything."""

    def send(self, body: Any, version: int) -> Any:
        for name in ("topics", "topic_partitions"):
            if getattr(body, name, ()) is None:
                setattr(body, name, [])
        return super().send(body, version)


@defect("swaps-adding-and-removing")
class SwapsAddingAndRemoving(Client):
    """Swaps the adding and removing replicas of a reassignment."""

    def success(self, result: Any) -> dict[str, Any]:
        rows = result.values() if isinstance(result, dict) else ()
        for row in rows:
            if isinstance(row, dict) and "adding" in row:
                row["adding"], row["removing"] = row["removing"], row["adding"]
        return super().success(result)
