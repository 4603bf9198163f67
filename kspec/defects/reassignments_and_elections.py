"""Defects about partitions: reassignments and elections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kproto.error_codes import ErrorCode
from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.link import Link
from kspec.reference_client.rules import Outcomes

__all__: list[str] = []

_ALTER_REASSIGNMENTS: Final = 45
_LIST_REASSIGNMENTS: Final = 46


@defect("cancels-by-an-empty-list")
class CancelsByAnEmptyList(Link):
    """Sends an empty list of replicas where null cancels a reassignment."""

    def send(self, body: Any, version: int) -> Any:
        if body.API_KEY == _ALTER_REASSIGNMENTS:
            for topic in body.topics:
                for partition in topic.partitions:
                    partition.replicas = partition.replicas or []
        return super().send(body, version)


@defect("takes-nothing-for-everything")
class TakesNothingForEverything(Link):
    """Sends null, which asks for everything, for an empty list."""

    def send(self, body: Any, version: int) -> Any:
        for name in ("topics", "topic_partitions"):
            if getattr(body, name, None) == []:
                setattr(body, name, None)
        return super().send(body, version)


@defect("ignores-the-filter")
class IgnoresTheFilter(Link):
    """Lists every reassignment although it was asked for some."""

    def send(self, body: Any, version: int) -> Any:
        if body.API_KEY == _LIST_REASSIGNMENTS:
            body.topics = None
        return super().send(body, version)


@defect("chokes-on-strangers")
class ChokesOnStrangers(Client):
    """Fails a call whose answer has a partition that it did not request."""

    def outcomes(self, wanted: Sequence[str], rows: Outcomes) -> dict[str, Any]:
        strangers = [key for key in rows if key not in wanted]
        if strangers:
            raise KeyError(strangers[0])
        return super().outcomes(wanted, rows)


@defect("fails-all-by-one")
class FailsAllByOne(Client):
    """Fails the whole call if an election was not needed."""

    def outcomes(self, wanted: Sequence[str], rows: Outcomes) -> dict[str, Any]:
        if any(code == ErrorCode.ELECTION_NOT_NEEDED for code, _ in rows.values()):
            raise RuntimeError("not every partition elected a leader")
        return super().outcomes(wanted, rows)


@defect("believes-in-time-outs")
class BelievesInTimeOuts(Client):
    """Treats a partition that timed out as successful."""

    def outcomes(self, wanted: Sequence[str], rows: Outcomes) -> dict[str, Any]:
        late = ErrorCode.REQUEST_TIMED_OUT
        return super().outcomes(
            wanted, {key: (0, None) if row[0] == late else row for key, row in rows.items()}
        )


@defect("files-outcomes-by-partition-number")
class FilesOutcomesByPartitionNumber(Client):
    """Looks up a partition's outcome by its number alone, ignoring the topic."""

    def outcomes(self, wanted: Sequence[str], rows: Outcomes) -> dict[str, Any]:
        numbered = {_number(key): row for key, row in rows.items()}
        found = {key: numbered[_number(key)] for key in wanted if _number(key) in numbered}
        return super().outcomes(wanted, found)


@defect("lists-by-partition-number")
class ListsByPartitionNumber(Client):
    """Looks up a partition's reassignment by its number alone, ignoring the topic."""

    def success(self, result: Any) -> dict[str, Any]:
        if isinstance(result, dict) and all(_is_reassignment(row) for row in result.values()):
            numbered = {_number(key): row for key, row in result.items()}
            result = {key: numbered[_number(key)] for key in result}
        return super().success(result)


def _number(key: str) -> str:
    return key.rpartition("-")[2]


def _is_reassignment(row: Any) -> bool:
    return isinstance(row, dict) and "adding" in row


@defect("elects-preferred-leaders-alone")
class ElectsPreferredLeadersAlone(Link):
    """Elects preferred leaders whatever type of election was requested."""

    def send(self, body: Any, version: int) -> Any:
        if getattr(body, "election_type", 0):
            body.election_type = 0
        return super().send(body, version)


@defect("overlooks-what-is-only-removed")
class OverlooksWhatIsOnlyRemoved(Link):
    """Lists no reassignment that adds no replica."""

    def decode(self, frame: bytes, api_key: int, version: int) -> Any:
        body = super().decode(frame, api_key, version)
        for topic in body.topics if api_key == _LIST_REASSIGNMENTS else ():
            topic.partitions = [each for each in topic.partitions if each.adding_replicas]
        return body
