"""The result that an adapter should give its caller for an answer.

Only unambiguous answers have one: a single answer, decoded strictly, without a top-level error. It
is None if clients may reasonably differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["differs", "meaning", "same"]

_CLIENTS_OWN: Final = frozenset({7, 13})
"""REQUEST_TIMED_OUT and NETWORK_EXCEPTION, which Java also uses for its own timeouts."""


def meaning(op: str, api_key: int, body: Any) -> Any:
    """Return the result of ``op``, or None if the answer alone does not determine it."""
    read = _MEANINGS.get((op, api_key))
    if read is None or getattr(body, "error_code", None):
        return None
    return read(body)


def same(op: str, got: Any, expected: Any) -> bool:
    """Return whether a client's result is the expected one.

    Duplicates and order are ignored. Of an error, only its presence counts, and its code if the
    client shows one.
    """
    if op == "describe_cluster":
        return isinstance(got, Mapping) and (
            set(got.get("brokers") or ()) == set(expected["brokers"])
            and got.get("controller") == expected["controller"]
        )
    if op == "list_topics":
        return isinstance(got, list) and set(got) == set(expected)
    if not isinstance(got, Mapping):
        return False
    # Errors that the client itself reports, also for what was requested and not answered.
    own = {key for key, each in got.items() if _is_error(each) and not _is_brokers(each)}
    if got and len(own) == len(got):
        return True
    if set(got) - own != set(expected) - own:
        return False
    return all(_same_entry(got[key], expected[key]) for key in set(got) - own)


def _same_entry(got: Any, expected: Any) -> bool:
    """Compare one entry. ``expected`` may be an error code."""
    if isinstance(expected, int):
        if expected == 0:
            return got is None
        return _is_error(got) and got.get("code") == expected
    return bool(got == expected)


def differs(got: Any, healthy: Any) -> bool:
    """Return whether a result that no valid answer produced contradicts the healthy one, other than
    by failing."""
    if not isinstance(got, Mapping) or not isinstance(healthy, Mapping):
        return bool(got != healthy)
    if set(got) != set(healthy):
        return True
    return any(got[key] != healthy[key] and not _is_error(got[key]) for key in got)


def _is_error(got: Any) -> bool:
    return isinstance(got, Mapping) and "error" in got


def _is_brokers(error: Mapping[str, Any]) -> bool:
    """Return whether a broker sent the error's code, rather than the client setting it because an
    answer is missing or makes no sense."""
    code = error.get("code")
    return isinstance(code, int) and code >= 0 and code not in _CLIENTS_OWN


def _cluster(body: Any) -> Any:
    brokers = [getattr(each, "broker_id", getattr(each, "node_id", None)) for each in body.brokers]
    if body.controller_id not in brokers:
        return None  # clients differ if the controller is not one of the brokers
    return {"brokers": sorted(brokers), "controller": body.controller_id}


def _names(body: Any) -> Any:
    if any(each.error_code or each.is_internal or not each.name for each in body.topics):
        return None
    return sorted(each.name for each in body.topics)


def _ongoing(body: Any) -> Any:
    return {
        f"{topic.name}-{each.partition_index}": {
            "replicas": each.replicas,
            "adding": each.adding_replicas,
            "removing": each.removing_replicas,
        }
        for topic in body.topics
        for each in topic.partitions
    }


def _altered(body: Any) -> Any:
    return {
        f"{topic.name}-{each.partition_index}": each.error_code
        for topic in body.responses
        for each in topic.partitions
    }


def _elected(body: Any) -> Any:
    return {
        f"{topic.topic}-{each.partition_id}": each.error_code
        for topic in body.replica_election_results
        for each in topic.partition_result
    }


def _created(body: Any) -> Any:
    return {topic.name: topic.error_code for topic in body.topics}


_MEANINGS: Final[Mapping[tuple[str, int], Callable[[Any], Any]]] = {
    ("describe_cluster", 60): _cluster,
    ("list_topics", 3): _names,
    ("list_reassignments", 46): _ongoing,
    ("alter_reassignments", 45): _altered,
    ("elect_leaders", 43): _elected,
    ("create_topics", 19): _created,
}
