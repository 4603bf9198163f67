"""What a controller of the older KIP-236 watches under ``/admin``, and what each makes it do.

``reassignment_requests`` is the new way to ask; ``reassign_partitions`` the legacy one, which is
turned into a request; ``reassign_partitions_extra`` is moved into that, partition by partition;
``reassign_cancel`` stops everything while it is there. What cannot be read, or not be done, is
logged and taken away: it would never get better, and what is left there is what is in flight.
"""

from __future__ import annotations

from typing import Final, Protocol

from kproto.znodes import ConnectionLossError, EventType, MalformedZnodeError, WatchedEvent
from kproto.znodes.plan_znodes import (
    REASSIGN_PARTITIONS,
    PlannedReplicas,
    decode_reassign_partitions,
)
from kproto.znodes.request_znodes import (
    REASSIGN_CANCEL,
    REASSIGN_PARTITIONS_EXTRA,
    REASSIGNMENT_REQUESTS,
    REQUEST_PREFIX,
    ReassignmentRequest,
    decode_request,
    encode_request,
)
from mockbroker.errors import Refusal
from mockbroker.reassignment.kip_236_old.effects import (
    RequestedPartition,
    original_of,
    plan_on_record,
    remove,
    store_plan,
)
from mockbroker.reassignment.transitions import Brokers
from mockbroker.reassignment.znode_watches import COMMON_WATCHES, ZnodeWatch
from mockbroker.state.actions import Warned
from mockbroker.state.controller import Controller
from mockbroker.state.controller_znodes import bytes_of
from mockbroker.state.model import Partition, TopicPartition
from mockbroker.topics.assignments import check_assignment

__all__ = ["WATCHES", "submit", "take_requests"]

_CAUSE: Final = "zookeeper"


class RequestRunner(Protocol):
    """What the reactions need of the controller; see ``kip_236_old.controller``."""

    def check(
        self, controller: Controller, tp: TopicPartition, replicas: Brokers, *, legacy: bool
    ) -> None: ...

    def request(
        self,
        controller: Controller,
        cause: str,
        tp: TopicPartition,
        replicas: Brokers,
        *,
        legacy: bool,
        original: Brokers | None,
    ) -> None: ...

    def roll_back(self, controller: Controller, cause: str, tp: TopicPartition) -> None: ...

    def roll_all_back(self, controller: Controller, cause: str) -> None: ...

    def resume(self, controller: Controller, cause: str) -> None: ...


def submit(controller: Controller, cause: str, request: ReassignmentRequest) -> str:
    """Put a request where the controller looks for them; its path. Raises ZnodeError, as where it
    is too large for ZooKeeper."""
    return controller.znodes.append(cause, REQUEST_PREFIX, encode_request(request).decode())


# ---- /admin/reassignment_requests ----------------------------------------------------------------


def _requests(runner: RequestRunner, controller: Controller, _: WatchedEvent | None) -> None:
    take_requests(runner, controller)


def take_requests(runner: RequestRunner, controller: Controller) -> None:
    """Oldest first: names end in a number that grows. A request goes once it was dealt with."""
    controller.znodes.touch(REASSIGNMENT_REQUESTS)
    for name in controller.znodes.children(REASSIGNMENT_REQUESTS, watch=True):
        path = f"{REASSIGNMENT_REQUESTS}/{name}"
        text = controller.znodes.read(path)
        if text is None:
            continue
        try:
            request = decode_request(path, bytes_of(text))
        except MalformedZnodeError as error:
            controller.record(_CAUSE, Warned(f"{error}; removed"))
        else:
            _deal_with(runner, controller, path, request)
        remove(controller, _CAUSE, path)


def _deal_with(
    runner: RequestRunner, controller: Controller, path: str, request: ReassignmentRequest
) -> None:
    plan = plan_on_record(controller) if request.legacy else {}
    for tp, replicas in request.assignments.items():
        planned = plan.get(tp)
        original = None if planned is None else planned.original_replicas
        try:
            runner.request(
                controller,
                _CAUSE,
                tp,
                tuple(replicas),
                legacy=request.legacy,
                original=None if original is None else tuple(original),
            )
        except Refusal as refusal:
            text = f"{path}: {tp[0]}-{tp[1]} is ignored: {refusal.message}"
            controller.record(_CAUSE, Warned(text))
    if request.legacy:
        _tidy(controller, request)


def _tidy(controller: Controller, request: ReassignmentRequest) -> None:
    """What this request asked for in vain, or what is done already, leaves the plan."""
    plan = plan_on_record(controller)
    over = [
        tp
        for tp, replicas in request.assignments.items()
        if tp in plan
        and tuple(plan[tp].replicas) == tuple(replicas)
        and not _legacy_in_flight(controller, tp)
    ]
    if over:
        rest = {tp: each for tp, each in plan.items() if tp not in over}
        store_plan(controller, _CAUSE, REASSIGN_PARTITIONS, rest)


def _legacy_in_flight(controller: Controller, tp: TopicPartition) -> RequestedPartition | None:
    partition = _known(controller, tp)
    if isinstance(partition, RequestedPartition) and partition.legacy:
        return partition
    return None


def _known(controller: Controller, tp: TopicPartition) -> Partition | None:
    topic = controller.state.topics.get(tp[0])
    return None if topic is None else topic.partition(tp[1])


# ---- /admin/reassign_partitions ------------------------------------------------------------------


def _legacy(runner: RequestRunner, controller: Controller, _: WatchedEvent | None) -> None:
    """First the plan gets the original replicas, then what is new in it becomes a request."""
    plan = _plan(controller, REASSIGN_PARTITIONS)
    if plan is None:
        return
    with_originals = {tp: _with_original(controller, tp, each) for tp, each in plan.items()}
    news = {
        tp: tuple(each.replicas)
        for tp, each in plan.items()
        if not _under_way(_legacy_in_flight(controller, tp), each)
    }
    try:
        store_plan(controller, _CAUSE, REASSIGN_PARTITIONS, with_originals)
        if news:
            submit(controller, _CAUSE, ReassignmentRequest(news, legacy=True))
    except ConnectionLossError as error:
        controller.record(_CAUSE, Warned(f"{error}; {REASSIGN_PARTITIONS} is removed"))
        remove(controller, _CAUSE, REASSIGN_PARTITIONS)
        return
    if news:
        take_requests(runner, controller)


def _plan(controller: Controller, path: str) -> dict[TopicPartition, PlannedReplicas] | None:
    """None where there is no plan, or none any more: what cannot be read is removed."""
    text = controller.znodes.read(path, watch=True)
    if text is None:
        return None
    try:
        return decode_reassign_partitions(path, bytes_of(text))
    except MalformedZnodeError as error:
        controller.record(_CAUSE, Warned(f"{error}; removed"))
        remove(controller, _CAUSE, path)
        return None


def _under_way(partition: RequestedPartition | None, planned: PlannedReplicas) -> bool:
    return partition is not None and partition.target_replicas == tuple(planned.replicas)


def _with_original(
    controller: Controller, tp: TopicPartition, planned: PlannedReplicas
) -> PlannedReplicas:
    """What a tool has written stays, if brokers by those ids can be had."""
    partition = _known(controller, tp)
    if partition is None:
        return planned
    if planned.original_replicas is not None:
        try:
            check_assignment(controller, planned.original_replicas)
        except Refusal as refusal:
            text = f"{REASSIGN_PARTITIONS}: original_replicas of {tp[0]}-{tp[1]}: {refusal.message}"
            controller.record(_CAUSE, Warned(text))
        else:
            return planned
    return PlannedReplicas(planned.replicas, original_of(partition))


# ---- /admin/reassign_partitions_extra ------------------------------------------------------------


def _extra(runner: RequestRunner, controller: Controller, _: WatchedEvent | None) -> None:
    """Each partition at once: what is pending is rolled back, then it joins the plan, then it
    leaves here; and what is left of nothing is no znode."""
    waiting = _plan(controller, REASSIGN_PARTITIONS_EXTRA)
    if waiting is None:
        return
    for tp, planned in list(waiting.items()):
        try:
            _move_to_the_plan(runner, controller, tp, planned)
        except Refusal as refusal:
            text = f"{REASSIGN_PARTITIONS_EXTRA}: {tp[0]}-{tp[1]} is ignored: {refusal.message}"
            controller.record(_CAUSE, Warned(text))
        del waiting[tp]
        store_plan(controller, _CAUSE, REASSIGN_PARTITIONS_EXTRA, waiting)
    store_plan(controller, _CAUSE, REASSIGN_PARTITIONS_EXTRA, waiting)
    _legacy(runner, controller, None)


def _move_to_the_plan(
    runner: RequestRunner,
    controller: Controller,
    tp: TopicPartition,
    planned: PlannedReplicas,
) -> None:
    runner.check(controller, tp, tuple(planned.replicas), legacy=True)
    if _legacy_in_flight(controller, tp):
        runner.roll_back(controller, _CAUSE, tp)
    partition = controller.state.topics[tp[0]].partitions[tp[1]]
    plan = plan_on_record(controller)
    plan[tp] = PlannedReplicas(planned.replicas, partition.replicas)
    store_plan(controller, _CAUSE, REASSIGN_PARTITIONS, plan)


# ---- /admin/reassign_cancel ----------------------------------------------------------------------


def _cancel(runner: RequestRunner, controller: Controller, event: WatchedEvent | None) -> None:
    """While it is there nothing starts, nothing goes on, and what is pending is rolled back. What
    could not be goes on once it is gone. It is its maker's to remove."""
    if controller.znodes.read(REASSIGN_CANCEL, watch=True) is not None:
        runner.roll_all_back(controller, _CAUSE)
    elif event is not None and event.type is EventType.NODE_DELETED:
        runner.resume(controller, _CAUSE)


WATCHES: Final = (
    *COMMON_WATCHES,
    ZnodeWatch(REASSIGN_CANCEL, False, _cancel),
    ZnodeWatch(REASSIGNMENT_REQUESTS, True, _requests),
    ZnodeWatch(REASSIGN_PARTITIONS, False, _legacy),
    ZnodeWatch(REASSIGN_PARTITIONS_EXTRA, False, _extra),
)
"""In the order in which one who takes over looks at them: what is in flight by then counts first,
then requests, then the legacy plan."""
