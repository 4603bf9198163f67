"""A rule's error in a response: in all of it, or in the elements that the rule is about."""

from __future__ import annotations

from kproto.codec.message import Message
from mockbroker.apis.common.error_places import chosen_places, place_error
from mockbroker.apis.common.error_skeleton import ErrorSkeleton
from mockbroker.apis.common.request_entities import Selection, Topics
from mockbroker.apis.common.version_cast import recast
from mockbroker.faults.partial_requests import merge_parts
from mockbroker.faults.rule import Fault

__all__ = ["carried_by_elements", "error_over", "merged_error", "refusal"]


def _selection(fault: Fault) -> Selection:
    return Selection(fault.topic, fault.partition)


def _code(fault: Fault) -> int:
    assert isinstance(fault.error, int)
    return fault.error


def carried_by_elements(fault: Fault, response: type[Message], version: int) -> bool:
    """Return whether the error goes into elements of arrays only, not to the top level."""
    places = chosen_places(response, version, fault.error_at, _selection(fault))
    return bool(places) and all(place.path for place in places)


def refusal(
    fault: Fault,
    request: Message,
    request_version: int,
    response: type[Message],
    version: int,
    topics: Topics,
) -> Message | None:
    """Return the response to a request that was not carried out; None if the version has no error
    code."""
    places = chosen_places(response, version, fault.error_at, _selection(fault))
    if not places:
        return None
    body = ErrorSkeleton(request, request_version, topics).answer(response, version, places)
    place_error(body, version, places, _code(fault), fault.error_message, topics)
    recast(body, version)
    return body


def error_over(
    fault: Fault,
    body: Message,
    request: Message | None,
    request_version: int,
    version: int,
    topics: Topics,
) -> bool:
    """Set the rule's error in the broker's response.

    If the response lacks the elements that the rule selects, they are added from the request.
    Returns False if there is no place for the error.
    """
    selection, response = _selection(fault), type(body)
    places = chosen_places(response, version, fault.error_at, selection)
    code, message = _code(fault), fault.error_message
    if place_error(body, version, places, code, message, topics, selection):
        return True
    if not places or request is None:
        return False
    taken = ErrorSkeleton(request, request_version, topics).answer(response, version, places)
    if not place_error(taken, version, places, code, message, topics, selection):
        place_error(taken, version, places, code, message, topics)
    merge_parts(body, taken, taken, version, places, topics)
    recast(body, version)
    return True


def merged_error(
    fault: Fault,
    rest: Message,
    taken: Message,
    whole: Message,
    request_version: int,
    version: int,
    topics: Topics,
) -> Message:
    """Return the broker's response to the ``rest`` of a request, with errors for the ``taken``
    part.

    ``whole`` is the request that both are parts of; its order is kept.
    """
    response = type(rest)
    places = chosen_places(response, version, fault.error_at, _selection(fault))
    failing = ErrorSkeleton(taken, request_version, topics).answer(response, version, places)
    place_error(failing, version, places, _code(fault), fault.error_message, topics)
    order = ErrorSkeleton(whole, request_version, topics).answer(response, version, places)
    merge_parts(rest, failing, order, version, places, topics)
    recast(rest, version)
    return rest
