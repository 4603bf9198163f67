"""The znodes that KIP-236's older revision watches under ``/admin``, with a reaction for each.

Requests are created below ``reassignment_requests``. A legacy plan in ``reassign_partitions`` is
turned into a request, and ``reassign_partitions_extra`` is moved into that plan, one partition
after the other. ``reassign_cancel`` disables reassignments while it exists. What cannot be read or
carried out is logged and removed, so that these znodes hold only what is in progress.
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
from mockbroker.simulation.reassignment.kip_236_old.requested_partitions import (
    RequestedPartition,
    original_of,
    plan_on_record,
    remove,
    store_plan,
)
from mockbroker.simulation.reassignment.transitions import Brokers
from mockbroker.simulation.reassignment.znode_watches import COMMON_WATCHES, ZnodeWatch
from mockbroker.simulation.state.actions import Warned
from mockbroker.simulation.state.cluster_parts import TopicPartition, find_partition
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.topics.assignments import check_assignment

__all__ = ["WATCHES", "submit", "take_requests"]

_CAUSE: Final = "zookeeper"


class RequestRunner(Protocol):
    """What the reactions need of the controller; see ``kip_236_old.controller``."""

    @property
    def controller(self) -> Controller: ...

    def check(self, tp: TopicPartition, replicas: Brokers, *, legacy: bool) -> None: ...

    def request(
        self,
        cause: str,
        tp: TopicPartition,
        replicas: Brokers,
        *,
        legacy: bool,
        original: Brokers | None,
    ) -> None: ...

    def roll_back(self, cause: str, tp: TopicPartition) -> None: ...

    def roll_all_back(self, cause: str) -> None: ...

    def resume(self, cause: str) -> None: ...


def submit(controller: Controller, cause: str, request: ReassignmentRequest) -> str:
    """Create a request znode. Returns its path. Raises ZnodeError, for example if it is too
    large."""
    return controller.znodes.append(cause, REQUEST_PREFIX, encode_request(request).decode())


# ---- /admin/reassignment_requests ----------------------------------------------------------------


def _requests(runner: RequestRunner, _: WatchedEvent | None) -> None:
    take_requests(runner)


def take_requests(runner: RequestRunner) -> None:
    """Carry out all requests, oldest first, and delete each afterwards."""
    controller = runner.controller
    controller.znodes.touch(REASSIGNMENT_REQUESTS)
    for name in controller.znodes.children(REASSIGNMENT_REQUESTS, watch=True):
        path = f"{REASSIGNMENT_REQUESTS}/{name}"
        text = controller.znodes.read(path)
        if text is None:
            continue
        try:
            request = decode_request(path, text)
        except MalformedZnodeError as error:
            controller.record(_CAUSE, Warned(f"{error}; removed"))
        else:
            _deal_with(runner, path, request)
        remove(controller, _CAUSE, path)


def _deal_with(runner: RequestRunner, path: str, request: ReassignmentRequest) -> None:
    controller = runner.controller
    plan = plan_on_record(controller) if request.legacy else {}
    for tp, replicas in request.assignments.items():
        planned = plan.get(tp)
        original = None if planned is None else planned.original_replicas
        try:
            runner.request(
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
    """Remove from the plan what this request could not start or has completed already."""
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
    partition = find_partition(controller.state.topics, tp)
    if isinstance(partition, RequestedPartition) and partition.legacy:
        return partition
    return None


# ---- /admin/reassign_partitions ------------------------------------------------------------------


def _legacy(runner: RequestRunner, _: WatchedEvent | None) -> None:
    """Add original replicas to the plan, then submit what is new in it as a request."""
    controller = runner.controller
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
        take_requests(runner)


def _plan(controller: Controller, path: str) -> dict[TopicPartition, PlannedReplicas] | None:
    """Read a plan; None if there is none. An unreadable one is deleted."""
    text = controller.znodes.read(path, watch=True)
    if text is None:
        return None
    try:
        return decode_reassign_partitions(path, text)
    except MalformedZnodeError as error:
        controller.record(_CAUSE, Warned(f"{error}; removed"))
        remove(controller, _CAUSE, path)
        return None


def _under_way(partition: RequestedPartition | None, planned: PlannedReplicas) -> bool:
    return partition is not None and partition.target_replicas == tuple(planned.replicas)


def _with_original(
    controller: Controller, tp: TopicPartition, planned: PlannedReplicas
) -> PlannedReplicas:
    """Original replicas that a tool has written stay, if such brokers are registered."""
    partition = find_partition(controller.state.topics, tp)
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


def _extra(runner: RequestRunner, _: WatchedEvent | None) -> None:
    """Move each partition of the extra plan: roll back what is pending of it, add it to the plan,
    remove it here."""
    controller = runner.controller
    waiting = _plan(controller, REASSIGN_PARTITIONS_EXTRA)
    if waiting is None:
        return
    for tp, planned in list(waiting.items()):
        try:
            _move_to_the_plan(runner, tp, planned)
        except Refusal as refusal:
            text = f"{REASSIGN_PARTITIONS_EXTRA}: {tp[0]}-{tp[1]} is ignored: {refusal.message}"
            controller.record(_CAUSE, Warned(text))
        del waiting[tp]
        store_plan(controller, _CAUSE, REASSIGN_PARTITIONS_EXTRA, waiting)
    store_plan(controller, _CAUSE, REASSIGN_PARTITIONS_EXTRA, waiting)
    _legacy(runner, None)


def _move_to_the_plan(runner: RequestRunner, tp: TopicPartition, planned: PlannedReplicas) -> None:
    controller = runner.controller
    runner.check(tp, tuple(planned.replicas), legacy=True)
    if _legacy_in_flight(controller, tp):
        runner.roll_back(_CAUSE, tp)
    partition = controller.partition(tp)
    plan = plan_on_record(controller)
    plan[tp] = PlannedReplicas(planned.replicas, partition.replicas)
    store_plan(controller, _CAUSE, REASSIGN_PARTITIONS, plan)


# ---- /admin/reassign_cancel ----------------------------------------------------------------------


def _cancel(runner: RequestRunner, event: WatchedEvent | None) -> None:
    """Roll back everything pending. While the znode exists nothing starts or continues; what could
    not be rolled back continues once its creator has deleted it."""
    if runner.controller.znodes.read(REASSIGN_CANCEL, watch=True) is not None:
        runner.roll_all_back(_CAUSE)
    elif event is not None and event.type is EventType.NODE_DELETED:
        runner.resume(_CAUSE)


WATCHES: Final = (
    *COMMON_WATCHES,
    ZnodeWatch(REASSIGN_CANCEL, False, _cancel),
    ZnodeWatch(REASSIGNMENT_REQUESTS, True, _requests),
    ZnodeWatch(REASSIGN_PARTITIONS, False, _legacy),
    ZnodeWatch(REASSIGN_PARTITIONS_EXTRA, False, _extra),
)
"""In the order in which a new controller reads them: reassignments in progress, then requests, then
the legacy plan."""
