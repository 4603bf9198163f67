"""Members of classic groups without sockets: requests to the coordinator, and their answers."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_group import (
    Group,
    JoinRequest,
    JoinResult,
    LeavingMember,
    Protocols,
    SyncRequest,
    SyncResult,
)
from mockbroker.simulation.releases.release import Release, ReleaseNumber
from tests.mockbroker.simulated import simulated_cluster

__all__ = ["RANGE", "Answer", "Coordinator"]

RANGE: Protocols = (("range", b"meta"),)
ResultT = TypeVar("ResultT")


@dataclass
class Answer(Generic[ResultT]):
    """The answer to one request; asking it twice fails."""

    results: list[ResultT] = field(default_factory=list)

    def __call__(self, result: ResultT) -> None:
        assert not self.results, "a request is answered once"
        self.results.append(result)

    @property
    def waits(self) -> bool:
        return not self.results

    @property
    def result(self) -> ResultT:
        assert self.results, "the request still waits"
        return self.results[0]

    @property
    def code(self) -> int:
        code = self.result.error_code  # type: ignore[attr-defined]
        assert isinstance(code, int)
        return code


class Coordinator:
    """The classic groups of a cluster of ``release``, most of all the group "g"."""

    def __init__(self, release: ReleaseNumber | Release = (4, 4), **configs: object) -> None:
        self.cluster = simulated_cluster(
            1,
            release=release,
            broker_configs={name.replace("_", "."): str(each) for name, each in configs.items()},
        )
        self.groups = self.cluster.groups.classic

    @property
    def group(self) -> Group:
        found = self.groups.group("g")
        assert found is not None
        return found

    @property
    def state(self) -> str:
        group = self.groups.group("g")
        return "none" if group is None else group.state.value

    def join(
        self,
        member_id: str = "",
        *,
        name: str = "c",
        instance: str | None = None,
        protocols: Protocols = RANGE,
        protocol_type: str = "consumer",
        session: int = 10_000,
        rebalance: int = 60_000,
        version: int = 3,
        group: str = "g",
        error: ErrorCode = ErrorCode.NONE,
    ) -> Answer[JoinResult]:
        """Join; below version 4 nobody needs a member id first."""
        answer = Answer[JoinResult]()
        request = JoinRequest(
            group,
            member_id,
            protocol_type,
            protocols,
            session,
            rebalance,
            instance,
            name,
            "/127.0.0.1",
            needs_member_id=version >= 4,
            can_skip_assignment=version >= 9,
        )
        self.groups.join(request, answer, error)
        return answer

    def sync(
        self,
        member_id: str,
        assignments: dict[str, bytes] | None = None,
        *,
        generation: int | None = None,
        instance: str | None = None,
        protocol: tuple[str | None, str | None] = (None, None),
        group: str = "g",
        error: ErrorCode = ErrorCode.NONE,
    ) -> Answer[SyncResult]:
        if generation is None:
            known = self.groups.group(group)
            generation = known.generation if known is not None else -1
        answer = Answer[SyncResult]()
        request = SyncRequest(
            group, member_id, generation, instance, *protocol, tuple((assignments or {}).items())
        )
        self.groups.sync(request, answer, error)
        return answer

    def beat(
        self,
        member_id: str,
        generation: int | None = None,
        *,
        instance: str | None = None,
        group: str = "g",
        error: ErrorCode = ErrorCode.NONE,
    ) -> int:
        if generation is None:
            known = self.groups.group(group)
            generation = known.generation if known is not None else -1
        return self.groups.heartbeat(group, member_id, instance, generation, error)

    def leave(self, *members: str | LeavingMember, group: str = "g") -> tuple[int, ...]:
        """The errors of the members; that of the request must be 0."""
        named = [LeavingMember(m) if isinstance(m, str) else m for m in members]
        code, codes = self.groups.leave(group, named)
        assert code == ErrorCode.NONE
        return codes

    def stable(self, *names: str, instances: tuple[str, ...] = ()) -> list[str]:
        """Form a stable group of these members, dynamic ones and then static ones, each with its
        name or instance id as its assignment. Returns their ids; the first one leads."""
        ids = self.completing(*names, instances=instances)
        syncs = [
            self.sync(each, {i: n.encode() for i, n in zip(ids, names + instances, strict=True)})
            for each in (*ids[1:], ids[0])
        ]
        assert [each.code for each in syncs] == [ErrorCode.NONE] * len(ids)
        assert self.state == "Stable"
        return ids

    def completing(self, *names: str, instances: tuple[str, ...] = ()) -> list[str]:
        """As ``stable``, before the leader has assigned."""
        new: list[tuple[str, str | None]] = [(n, None) for n in names]
        new += [("c", i) for i in instances]
        leader = self.join(name=new[0][0], instance=new[0][1]).result.member_id
        others = [self.join(name=n, instance=i) for n, i in new[1:]]
        if others:
            assert self.join(leader, instance=new[0][1]).code == ErrorCode.NONE
        assert self.state == "CompletingRebalance"
        return [leader, *(each.result.member_id for each in others)]

    def preparing(self, *names: str, instances: tuple[str, ...] = ()) -> list[str]:
        """As ``stable``, and then a rebalance has begun that waits for everybody."""
        ids = self.stable(*names, instances=instances)
        self.groups.force_rebalance("g")
        assert self.state == "PreparingRebalance"
        return ids

    def limit_to(self, max_size: int) -> None:
        """Change group.max.size while groups live, as a restart with another file does."""
        machine = self.groups.machine
        limited = replace(machine.settings, max_size=max_size)
        machine._settings = lambda: limited

    def advance(self, milliseconds: int) -> None:
        self.cluster.turns.advance(milliseconds)
