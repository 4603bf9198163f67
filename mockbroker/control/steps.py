"""The steps of ``MockCluster`` as routes: ``POST /join-isr`` and the like take a JSON object and
answer with the actions that followed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from mockbroker.control.routes import (
    DURATION,
    TEXT,
    WAITS,
    WHOLE,
    Asked,
    Member,
    Route,
    duration_of,
    integer_of,
    partition_of,
    text_of,
    within,
)
from mockbroker.control.schemas import ref
from mockbroker.errors import ClusterError
from mockbroker.mock_cluster import MockCluster

__all__ = ["COMMANDS", "STEPS", "Step"]

Do: TypeAlias = Callable[[MockCluster, Mapping[str, Any]], Awaitable[object] | object]
"""Given the body's members as read."""


class Step(NamedTuple):
    """``fields`` are the members its JSON object must have: no more and no fewer. ``max_body`` is
    in bytes."""

    text: str
    do: Do
    fields: tuple[Member, ...] = ()
    max_body: int = 64 * 1024


def _level(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ClusterError(f'"{name}" must be text such as "4=0-2", not {value!r:.80}')
    return value


def _text_or_none(name: str, value: Any) -> str | None:
    return None if value is None else text_of(name, value)


_ZNODE_BODY: Final = 8 * 1024 * 1024
"""ZooKeeper takes 1 MiB, which JSON may write with six bytes for one."""

_BROKER: Final = Member("broker", {"type": "integer"}, integer_of, "A broker's id.")
_PARTITION: Final = Member(
    "partition", {**TEXT, "pattern": "-[0-9]+$", "examples": ["foo-0"]}, partition_of
)
_DURATION: Final = Member("duration", DURATION, duration_of)
_PATH: Final = Member("path", {**TEXT, "examples": ["/admin/reassign_partitions"]}, text_of)
_LEVEL: Final = Member(
    "level",
    {**TEXT, "examples": ["kafka-2.3", "4=0-2,45=off", "cluster"]},
    _level,
    "A release, the versions in which it differs from the other brokers, or `cluster`.",
)

COMMANDS: Final[dict[str, Step]] = {
    "join-isr": Step(
        "A replica has caught up.",
        lambda mock, body: mock.join_isr(body["partition"], body["broker"]),
        (_PARTITION, _BROKER),
    ),
    "leave-isr": Step(
        "A replica fell behind.",
        lambda mock, body: mock.leave_isr(body["partition"], body["broker"]),
        (_PARTITION, _BROKER),
    ),
    "failover": Step(
        "Make another live broker the controller.",
        lambda mock, body: mock.failover(body["broker"]),
        (_BROKER,),
    ),
    "stop-broker": Step(
        "Let a broker die: connections break, its port refuses.",
        lambda mock, body: mock.stop_broker(body["broker"]),
        (_BROKER,),
    ),
    "start-broker": Step(
        "Bring a broker back, on the same port.",
        lambda mock, body: mock.start_broker(body["broker"]),
        (_BROKER,),
    ),
    "set-level": Step(
        "Let a broker run other software.",
        lambda mock, body: mock.set_level(body["broker"], body["level"]),
        (_BROKER, _LEVEL),
    ),
    "hold-metadata": Step(
        "Freeze what a broker answers to Metadata.",
        lambda mock, body: mock.hold_metadata(body["broker"]),
        (_BROKER,),
    ),
    "release-metadata": Step(
        "Let a broker's metadata follow again.",
        lambda mock, body: mock.release_metadata(body["broker"]),
        (_BROKER,),
    ),
    "advance": Step(
        "Let simulated time pass at once.",
        lambda mock, body: mock.advance(body["duration"]),
        (_DURATION,),
    ),
    "propagation": Step(
        "Let every broker hear of changes that much later; 0 for at once.",
        lambda mock, body: mock.set_propagation(body["duration"]),
        (_DURATION,),
    ),
    "hold-elections": Step(
        "Let elections lie in the controller's queue (ZooKeeper, KIP-183).",
        lambda mock, _: mock.hold_elections(),
    ),
    "release-elections": Step(
        "Let the controller hold the elections that lie in its queue.",
        lambda mock, _: mock.release_elections(),
    ),
    "write-znode": Step(
        "Create or change a znode; null as text deletes it.",
        lambda mock, body: mock.write_znode(body["path"], body["text"]),
        (_PATH, Member("text", {"type": ["string", "null"]}, _text_or_none)),
        _ZNODE_BODY,
    ),
    "append-znode": Step(
        "Create a sequence znode: ten digits after the path.",
        lambda mock, body: mock.append_znode(body["path"], body["text"]),
        (_PATH, Member("text", TEXT, text_of)),
        _ZNODE_BODY,
    ),
    "resign-controller": Step(
        "Leave the cluster without a controller until `failover`, or until a broker starts.",
        lambda mock, _: mock.resign_controller(),
    ),
    "expire-session": Step(
        "Let a broker's ZooKeeper session expire; it registers anew.",
        lambda mock, body: mock.expire_session(body["broker"]),
        (_BROKER,),
    ),
    "kill-controller-after": Step(
        "Let the controller die in the midst of what it does next, after so many changes.",
        lambda mock, body: mock.kill_controller_after(body["changes"]),
        (Member("changes", WHOLE, integer_of),),
    ),
}
"""Command -> what it takes and does."""


def _route(name: str, step: Step) -> Route:
    async def answer(asked: Asked) -> dict[str, Any]:
        log = asked.mock.cluster.log
        offset = len(log)
        await within(asked.mock.take(step.do, asked.mock, asked.body))
        return {"actions": [action.to_dict() for action in log.since(offset)]}

    return Route(
        "POST", f"/{name}", step.text, answer, ref("Actions"), body=step.fields, refusals=WAITS,
        max_body=step.max_body,
    )  # fmt: skip


STEPS: Final = tuple(_route(name, step) for name, step in COMMANDS.items())
