"""Members of groups of the newer protocols without sockets: heartbeats to the coordinator."""

from collections.abc import Iterable
from typing import Any, ClassVar, Generic, TypeVar

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.modern.heartbeats import Heartbeat, HeartbeatResult
from mockbroker.simulation.groups.modern.modern_group import GroupT
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.state.cluster_parts import Broker
from tests.mockbroker.simulated import simulated_cluster

__all__ = ["ModernMembers", "refused"]

ResultT = TypeVar("ResultT", bound=HeartbeatResult)


def refused(result: HeartbeatResult) -> tuple[int, str | None]:
    """The error and its text of a heartbeat that got nothing else."""
    assert not result.member_id
    assert result.assignment is None
    return result.error_code, result.error_message


class ModernMembers(Generic[GroupT, ResultT]):
    """The groups of one kind in a cluster of ``release``, most of all the group "g". Targets may
    follow one another at once, unless a config says otherwise."""

    group_type: ClassVar[str]
    request: ClassVar[type[Heartbeat]]

    def __init__(
        self,
        release: tuple[int, int],
        topics: Iterable[str],
        brokers: int | Iterable[Broker] = 1,
        *,
        fixes: tuple[tuple[str, bool], ...] = (),
        cut_last_batch: bool = False,
        **configs: object,
    ) -> None:
        given = {name.replace("_", "."): str(value) for name, value in configs.items()}
        if release >= (4, 3):
            given.setdefault(f"group.{self.group_type}.assignment.interval.ms", "0")
        self.cluster = simulated_cluster(
            brokers,
            release=Release(release, fixes),
            broker_configs=given,
            topics=topics,
            cut_last_batch=cut_last_batch,
        )
        self.groups: Any = getattr(self.cluster.groups, self.group_type)

    @property
    def group(self) -> GroupT:
        found: GroupT | None = self.groups.group("g")
        assert found is not None
        return found

    @property
    def state(self) -> str:
        found = self.groups.group("g")
        return "none" if found is None else str(found.state)

    def member_state(self, member: str) -> tuple[int, str]:
        found = self.group.members[member]
        return found.epoch, found.state.name

    def beat(self, member: str = "a", epoch: int | None = None, **fields: Any) -> ResultT:
        """A heartbeat; without an epoch, of the one that the member has."""
        group = fields.pop("group", "g")
        error = fields.pop("error", ErrorCode.NONE)
        if epoch is None:
            known = self.groups.group(group)
            epoch = 1 if known is None else known.members[member].epoch
        given = {"client_id": "c", "client_host": "/127.0.0.1", **self._fields(member, fields)}
        result: ResultT = self.groups.heartbeat(self.request(group, member, epoch, **given), error)
        return result

    def _fields(self, member: str, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of a request that a test has given."""
        topics = fields.pop("topics", None)
        return {"topic_names": None if topics is None else tuple(topics), **fields}

    def join(self, member: str = "a", **fields: Any) -> ResultT:
        """Join, subscribed to foo."""
        return self.beat(member, 0, **{"topics": ["foo"], **fields})

    def leave(self, member: str = "a", epoch: int = -1, **fields: Any) -> ResultT:
        return self.beat(member, epoch, **fields)

    def advance(self, milliseconds: int) -> None:
        self.cluster.turns.advance(milliseconds)
