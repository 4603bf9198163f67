"""Defects about administration: topics, configs, groups and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.coordinators import Coordinators
from kspec.reference_client.link import Link
from kspec.reference_client.rules import Outcomes
from kspec.reference_client.topics import TopicPartition, Topics, message

__all__: list[str] = []

_LIST_OFFSETS: Final = 2
_NOT_CONTROLLER: Final = 41
_INCREMENTAL_ALTER_CONFIGS: Final = 44
_STATES_SINCE, _TYPES_SINCE = 4, 5
_CHANGES: Final = frozenset({19, 20, 37})
"""CreateTopics, DeleteTopics and CreatePartitions."""


@defect("changes-what-it-validates")
class ChangesWhatItValidates(Link):
    """Sends a request that only validates as one that makes the change."""

    def send(self, body: Any, version: int) -> Any:
        if getattr(body, "validate_only", False):
            body.validate_only = False
        return super().send(body, version)


@defect("drops-the-message")
class DropsTheMessage(Client):
    """Reports an error's code without the broker's message."""

    def outcomes(self, wanted: Sequence[str], rows: Outcomes) -> dict[str, Any]:
        return super().outcomes(wanted, {key: (code, None) for key, (code, _) in rows.items()})


@defect("takes-a-quota-for-final")
class TakesAQuotaForFinal(Client):
    """Reports a change beyond the quota as failed, without another attempt."""

    def is_over_quota(self, code: int) -> bool:
        return False


@defect("repeats-changes-within-the-throttle")
class RepeatsChangesWithinTheThrottle(Client):
    """Sends a change beyond the quota again without the pause that the broker asked for."""

    class Hasty(Link):
        """Pauses for no throttle of a change, but briefly enough not to be without end."""

        def apply_throttle(self, milliseconds: int, api_key: int, version: int) -> None:
            capped = min(milliseconds, 20) if api_key in _CHANGES else milliseconds
            super().apply_throttle(capped, api_key, version)

    link = Hasty


@defect("overlooks-not-controller-of-a-change")
class OverlooksNotControllerOfAChange(Client):
    """Takes NOT_CONTROLLER of a topic for the final outcome."""

    async def ask(self, where: Any, body: Any, code_of: Any, *more: Any) -> Any:
        if body.API_KEY in _CHANGES:
            return await super().ask(where, body, lambda _answer: 0, *more)
        return await super().ask(where, body, code_of, *more)


@defect("asks-one-leader-for-all")
class AsksOneLeaderForAll(Client):
    """Sends all partitions to the leader of the first."""

    def by_leader(
        self, topics: Topics, wanted: Iterable[TopicPartition]
    ) -> dict[int, list[TopicPartition]]:
        found = super().by_leader(topics, wanted)
        every = [tp for mine in found.values() for tp in mine]
        return {next(iter(found)): every} if found else {}

    def has_moved(self, code: int) -> bool:
        return False


@defect("keeps-to-the-first-leaders")
class KeepsToTheFirstLeaders(Client):
    """Reports NOT_LEADER_OR_FOLLOWER of a partition without a look at newer metadata."""

    def has_moved(self, code: int) -> bool:
        return False


@defect("asks-any-broker-for-configs")
class AsksAnyBrokerForConfigs(Client):
    """Sends the configs of a broker to whichever broker it is connected to."""

    def config_broker(self, resource: str) -> int | None:
        return None


@defect("replaces-configs")
class ReplacesConfigs(Client):
    """Sets configs by replacing all that the resource has."""

    async def ask(self, where: Any, body: Any, code_of: Any, *more: Any) -> Any:
        if body.API_KEY == _INCREMENTAL_ALTER_CONFIGS:
            body = self.replacement(body)
        return await super().ask(where, body, code_of, *more)

    def replacement(self, body: Any) -> Any:
        resource = message("AlterConfigsRequest.AlterConfigsResource")
        config = message("AlterConfigsRequest.AlterableConfig")
        return message("AlterConfigsRequest")(
            resources=[
                resource(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    configs=[
                        config(name=one.name, value=one.value)
                        for one in each.configs
                        if one.value is not None
                    ],
                )
                for each in body.resources
            ]
        )


@defect("replaces-configs-of-old-brokers")
class ReplacesConfigsOfOldBrokers(ReplacesConfigs):
    """Replaces all configs of a resource where the broker cannot change single ones."""

    async def ask(self, where: Any, body: Any, code_of: Any, *more: Any) -> Any:
        link = await where()
        if body.API_KEY == _INCREMENTAL_ALTER_CONFIGS and body.API_KEY not in link.versions:
            body = self.replacement(body)
        return await super(ReplacesConfigs, self).ask(where, body, code_of, *more)


@defect("sets-configs-to-nothing")
class SetsConfigsToNothing(Link):
    """Sets a config to an empty text where it should be removed."""

    def send(self, body: Any, version: int) -> Any:
        if body.API_KEY == _INCREMENTAL_ALTER_CONFIGS:
            for each in (one for resource in body.resources for one in resource.configs):
                each.value = each.value or ""
                each.config_operation = 0
        return super().send(body, version)


@defect("lists-the-groups-of-one-broker")
class ListsTheGroupsOfOneBroker(Client):
    """Lists the groups of a single broker."""

    def brokers_to_ask(self) -> list[int]:
        return super().brokers_to_ask()[:1]


@defect("hides-that-a-broker-gave-no-groups")
class HidesThatABrokerGaveNoGroups(Client):
    """Lists the groups of the brokers that answer as if those were all."""

    def described_errors(self, errors: Sequence[Exception]) -> list[dict[str, Any]]:
        return []


@defect("drops-the-filter-of-groups")
class DropsTheFilterOfGroups(Client):
    """Lists every group where a broker cannot filter by state or type."""

    class Unfiltered(Link):
        """Leaves a filter out where the version has none."""

        def send(self, body: Any, version: int) -> Any:
            if getattr(body, "states_filter", None) and version < _STATES_SINCE:
                body.states_filter = []
            if getattr(body, "types_filter", None) and version < _TYPES_SINCE:
                body.types_filter = []
            return super().send(body, version)

    link = Unfiltered

    def require(self, link: Link, api_key: int, version: int, problem: str) -> None:
        """Requires nothing."""


class _FirstCoordinator(Coordinators):
    def passes(self, code: int) -> bool:
        return False


@defect("takes-the-first-word-of-a-coordinator")
class TakesTheFirstWordOfACoordinator(Client):
    """Takes the first answer for a group, also of a broker that no longer coordinates it."""

    def coordinators(self) -> Coordinators:
        return _FirstCoordinator(self)


@defect("sends-no-filter-of-groups")
class SendsNoFilterOfGroups(Link):
    """Asks for all groups whatever the filter."""

    def send(self, body: Any, version: int) -> Any:
        if getattr(body, "states_filter", None):
            body.states_filter = []
        return super().send(body, version)


class _KeptCoordinators(Coordinators):
    def forget(self, kind: int, key: str) -> None:
        """Keeps them."""


@defect("keeps-the-coordinators-of-groups")
class KeepsTheCoordinatorsOfGroups(Client):
    """Sends what is for a group's coordinator to the first one, for good."""

    kept: Coordinators | None = None

    def coordinators(self) -> Coordinators:
        self.kept = self.kept or _KeptCoordinators(self)
        return self.kept


@defect("takes-no-match-for-the-start")
class TakesNoMatchForTheStart(Link):
    """Reports offset 0 where no record is as late as the time that was asked for."""

    def decode(self, frame: bytes, api_key: int, version: int) -> Any:
        body = super().decode(frame, api_key, version)
        for topic in body.topics if api_key == _LIST_OFFSETS else ():
            for row in topic.partitions:
                row.offset = max(row.offset, 0)
        return body


class _Offsets(Link):
    """Changes the offsets that are found for times. 0 and less stand for the ends of a log."""

    times: Mapping[int, int] = MappingProxyType({})

    async def ask(self, body: Any, version: int | None = None) -> Any:
        if body.API_KEY == _LIST_OFFSETS:
            self.change_request(body)
            rows = [row for each in body.topics for row in each.partitions]
            self.times = {row.partition_index: row.timestamp for row in rows}
        answer = await super().ask(body, version)
        for topic in answer.topics if body.API_KEY == _LIST_OFFSETS else ():
            for row in topic.partitions:
                row.offset = self.changed(row.offset, self.times.get(row.partition_index, 0))
        return answer

    def change_request(self, body: Any) -> None:
        """Nothing."""

    def changed(self, offset: int, time: int) -> int:
        return offset


@defect("takes-the-record-before-a-time")
class TakesTheRecordBeforeATime(_Offsets):
    """Reports the last record before a time, not the first from it on."""

    def changed(self, offset: int, time: int) -> int:
        return max(offset - 1, 0) if time > 0 and offset > 0 else offset


@defect("takes-every-time-for-the-end")
class TakesEveryTimeForTheEnd(_Offsets):
    """Asks for the end of the log in place of a time."""

    def change_request(self, body: Any) -> None:
        for row in (row for each in body.topics for row in each.partitions):
            row.timestamp = min(row.timestamp, -1)


@defect("asks-with-the-first-time")
class AsksWithTheFirstTime(_Offsets):
    """Asks a leader for all partitions with the time of the first."""

    def change_request(self, body: Any) -> None:
        rows = [row for each in body.topics for row in each.partitions]
        for row in rows:
            row.timestamp = rows[0].timestamp


@defect("makes-offsets-of-nothing")
class MakesOffsetsOfNothing(_Offsets):
    """Counts offsets from one."""

    def changed(self, offset: int, time: int) -> int:
        return max(offset, 1)


@defect("lists-32-bits-of-offsets")
class Lists32BitsOfOffsets(_Offsets):
    """Reports the lower 32 bits of the offsets of a log."""

    def changed(self, offset: int, time: int) -> int:
        return offset % 2**32 if offset >= 0 else offset
