"""Errors of the mock broker itself: commands that cannot be carried out.

Errors that clients receive are error codes in results (``mockbroker.simulation.state.results``).
Rules raise them as ``Refusal``, which never leaves this package.

::

    kproto.KprotoError
    └── ClusterError            a command that the simulated cluster cannot carry out
        ├── ControllerDiedError     the controller died during the command, as requested before
        ├── NotControllerError      there is no controller, or it resigned before the request
        ├── UnreadableError         Kafka's class for the request refuses its content
        ├── FaultError              an invalid fault rule: file, line, rule
        ├── UnknownBrokerError      no broker of that id was registered
        └── UnknownPartitionError   no such topic, or no such partition in it
"""

from __future__ import annotations

from collections.abc import Sequence

from kproto.errors import KprotoError

__all__ = [
    "ClusterError",
    "ControllerDiedError",
    "FaultError",
    "NotControllerError",
    "Refusal",
    "UnknownBrokerError",
    "UnknownPartitionError",
    "UnreadableError",
    "raise_together",
]


class ClusterError(KprotoError, ValueError):
    """A command, an option or a description of a cluster is invalid; the text is one line."""


class ControllerDiedError(ClusterError):
    """The controller died before it could finish; the action log has what it did until then."""

    def __init__(self, broker_id: int) -> None:
        super().__init__(f"broker {broker_id} died during this command, as requested")
        self.broker_id = broker_id


class NotControllerError(ClusterError):
    """There is no controller, or it resigned while the request was queued.

    Clients receive NOT_CONTROLLER (41) and look for the next controller.
    """


class UnreadableError(ClusterError):
    """A request follows its schema, but Kafka's class for it refuses the content.

    A broker closes the connection, as for bytes that do not follow the schema.
    """


class FaultError(ClusterError):
    """A fault rule is invalid.

    ``source`` is the file, or empty; ``line`` counts from 1, or is None if the format has no lines;
    ``rule`` is the name or the number of the rule.
    """

    def __init__(
        self, problem: str, *, source: str = "", line: int | None = None, rule: str = ""
    ) -> None:
        self.problem = problem
        self.source = source
        self.line = line
        self.rule = rule
        where = source if line is None else f"{source or 'line'}:{line}"
        super().__init__(": ".join(part for part in (where, rule, problem) if part))


class UnknownBrokerError(ClusterError, LookupError):
    """No broker of this id is registered."""


class UnknownPartitionError(ClusterError, LookupError):
    """The topic or partition does not exist."""


class Refusal(Exception):
    """A request, or a part of it, is answered with an error code.

    ``message`` is None if the response has no text: Kafka sends null in place of the code's generic
    text.
    """

    def __init__(self, code: int, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


def raise_together(message: str, errors: Sequence[Exception]) -> None:
    """Raise the error if there is one, and an ExceptionGroup if there are several."""
    if len(errors) > 1:
        raise ExceptionGroup(message, errors)
    for error in errors:
        raise error
