"""What IncrementalAlterConfigs (44) and AlterConfigs (33) share: checks of the receiving broker.

Any broker accepts topic configs, with or without forwarding. Configs of a named broker must go to
that broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, TypeVar

from kproto.error_codes import ErrorCode
from mockbroker.apis.calls import Call
from mockbroker.apis.common.authorization import BROKER_CONFIG_TYPES, config_refusal, may_config
from mockbroker.apis.common.config_types import config_type_name, known_config_type
from mockbroker.errors import Refusal, UnreadableError
from mockbroker.simulation.configs.changes import SET, SUBTRACT, ConfigOperation
from mockbroker.simulation.configs.effective import broker_as_text, integer
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_state import BROKER, BROKER_LOGGER, TOPIC
from mockbroker.simulation.state.results import AlterConfigsResult

__all__ = ["Resource", "alter_each"]

ResponseT = TypeVar("ResponseT")

Resource: TypeAlias = tuple[int, str, Sequence[ConfigOperation]]
"""(resource type, resource name, operations)"""

_REPLACES: Final = 33
"""AlterConfigs."""


def alter_each(
    call: Call,
    resources: Sequence[Resource],
    alter: Callable[..., tuple[AlterConfigsResult, ...]],
    respond: Callable[..., ResponseT],
    alter_loggers: Callable[[Call, str, Sequence[ConfigOperation]], AlterConfigsResult],
) -> list[ResponseT]:
    """Return a response for each resource. ``alter`` is the method of the cluster that changes
    those which pass the checks, ``alter_loggers`` changes the loggers of a broker, and ``respond``
    is the class of the responses."""
    if call.profile.forwarding and call.release.has(facts.CONFIGS_FORWARDED):
        return [_responded(respond, each) for each in _forwarded(call, resources, alter)]
    is_older = call.cluster.controller.keeps_znodes and call.release.has(
        facts.CONFIG_RESOURCES_CHECKED_SINGLY
    )
    replaces = call.body.API_KEY == _REPLACES
    if replaces and call.release.has(facts.ALTERED_RESOURCES_MAPPED):
        resources = _mapped(call, resources)
    failure = _failure_of_all(call, resources, replaces=replaces) if is_older else None
    if failure is not None:
        code, text = failure
        return [
            respond(error_code=code, error_message=text, resource_type=kind, resource_name=name)
            for kind, name, _ in resources
        ]
    if is_older and not replaces:
        resources = list({each[:2]: each for each in resources}.values())
    times = Counter((kind, name) for kind, name, _ in resources)
    fails = not call.cluster.controller.keeps_znodes and any(
        times[each[:2]] == 1 and _fails_controller(call, each) for each in resources
    )
    results: list[AlterConfigsResult] = []
    for resource in resources:
        kind, name, operations = resource
        if times[kind, name] > 1:
            results.append(_refused(kind, name, "Each resource must appear at most once."))
        elif not may_config(call, AclOperation.ALTER_CONFIGS, kind, name):
            results.append(_unauthorized(kind, name))
        elif kind == BROKER and not call.release.has(facts.BROKERS_ALTERED):
            text = "AlterConfigs is only supported for topics, but resource type is BROKER"
            results.append(_refused(kind, name, text))
        elif kind == BROKER and _is_elsewhere(call, name):
            text = _elsewhere(call, name, is_older=is_older)
            if not (is_older and replaces):
                text = _refused_here(call, resource) or text
            results.append(_refused(kind, name, text))
        elif kind == BROKER_LOGGER and call.release.has(facts.BROKER_LOGGERS):
            results.append(alter_loggers(call, name, operations))
        elif fails:
            problem = _refused_here(call, resource)
            results.append(
                AlterConfigsResult(kind, name, ErrorCode.UNKNOWN_SERVER_ERROR, None)
                if problem is None
                else _refused(kind, name, problem)
            )
        else:
            results += alter([resource], validate_only=call.body.validate_only)
    return [_responded(respond, each) for each in results]


def _fails_controller(call: Call, resource: Resource) -> bool:
    """Whether KRaft's controller fails, and with it all that the request asks of it: an operation
    that does not exist comes through to it. Brokers look at their own configs first."""
    kind, name, operations = resource
    return (
        kind not in (BROKER, BROKER_LOGGER)
        and any(not SET <= how <= SUBTRACT for _, how, _ in operations)
        and may_config(call, AclOperation.ALTER_CONFIGS, kind, name)
        and _refused_here(call, resource) is None
    )


def _is_elsewhere(call: Call, name: str) -> bool:
    """Whether another broker has to change the configs. A controller changes those of all."""
    return call.session.controller is None and name not in ("", str(call.broker_id))


def _responded(respond: Callable[..., ResponseT], result: AlterConfigsResult) -> ResponseT:
    return respond(
        error_code=result.error_code,
        error_message=result.error_message,
        resource_type=result.resource_type,
        resource_name=result.resource_name,
    )


def _forwarded(
    call: Call, resources: Sequence[Resource], alter: Callable[..., tuple[AlterConfigsResult, ...]]
) -> list[AlterConfigsResult]:
    """The results of a KRaft controller to which the broker forwards the request as it is."""
    checks = call.release.has(facts.CONFIG_TYPES_OF_FORWARDED)
    results: list[AlterConfigsResult] = []
    changes: dict[tuple[int, str], Resource] = {}
    repeated: set[tuple[int, str]] = set()
    for kind, name, operations in resources:
        known = kind if kind in (TOPIC, *BROKER_CONFIG_TYPES) else 0
        if checks and not known:
            text = f"Unknown resource type {kind}."
            results.append(AlterConfigsResult(kind, name, ErrorCode.UNSUPPORTED_VERSION, text))
        elif checks and (kind, name) in changes:
            repeated.add((kind, name))
            del changes[kind, name]
            results.append(_refused(kind, name, "Duplicate resource."))
        elif (kind, name) not in repeated:
            changes[known, name] = (known, name, operations)
    for kind, name, operations in changes.values():
        if not may_config(call, AclOperation.ALTER_CONFIGS, kind, name):
            results.append(_unauthorized(kind, name))
        elif checks and kind == BROKER_LOGGER:
            results.append(_refused(kind, name, "Unexpected resource type BROKER_LOGGER."))
        else:
            results += alter([(kind, name, operations)], validate_only=call.body.validate_only)
    return results


def _mapped(call: Call, resources: Sequence[Resource]) -> list[Resource]:
    """The resources as a map that has 0 for unknown types. Raises UnreadableError for null
    values."""
    if _has_nulls(resources):
        raise UnreadableError("a config without a value, which Kafka does not read")
    return list(
        {
            (found := known_config_type(call, kind), name): (found, name, operations)
            for kind, name, operations in resources
        }.values()
    )


def _has_nulls(resources: Sequence[Resource]) -> bool:
    return any(value is None for *_, operations in resources for _, _, value in operations)


def _failure_of_all(
    call: Call, resources: Sequence[Resource], *, replaces: bool
) -> tuple[ErrorCode, str | None] | None:
    """The error that all resources get because of one; None if there is none such."""
    named = Counter((known_config_type(call, kind), name) for kind, name, _ in resources)
    if replaces and (_has_nulls(resources) or len(named) < len(resources)):
        return ErrorCode.UNKNOWN_SERVER_ERROR, None
    has_loggers = call.release.has(facts.BROKER_LOGGERS)
    for kind, _, _ in resources:
        if kind == BROKER_LOGGER and has_loggers:
            if replaces:
                return ErrorCode.INVALID_REQUEST, call.release.value_of(facts.LOGGERS_REPLACED)
        elif kind not in (TOPIC, *BROKER_CONFIG_TYPES):
            text = f"Unexpected resource type {config_type_name(call, kind)}"
            return ErrorCode.INVALID_REQUEST, text
    return None


def _refused_here(call: Call, resource: Resource) -> str | None:
    """Return the error of a resource that the receiving broker refuses for what it is."""
    kind, _, operations = resource
    nulls_too = call.body.API_KEY == _REPLACES or call.release.has(facts.NULLS_CHECKED)
    try:
        call.cluster.config_changes.check_resource(kind, operations, nulls_too=nulls_too)
    except Refusal as refusal:
        return refusal.message
    return None


def _elsewhere(call: Call, name: str, *, is_older: bool) -> str:
    if integer(name) is None:
        whose = "Broker" if is_older else "Node"
        return f"{whose} id must be an integer, but it is: {name}"
    other = broker_as_text(name, call.release)
    return f"Unexpected broker id, expected {call.broker_id}, but received {other}"


def _unauthorized(kind: int, name: str) -> AlterConfigsResult:
    code, text = config_refusal(kind)
    # The receiving broker already refuses configs of brokers, with a shorter text.
    return AlterConfigsResult(kind, name, code, None if kind in BROKER_CONFIG_TYPES else text)


def _refused(kind: int, name: str, text: str) -> AlterConfigsResult:
    return AlterConfigsResult(kind, name, ErrorCode.INVALID_REQUEST, text)
