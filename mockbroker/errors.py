"""Errors of the mock broker itself: a wrong command, never something a Kafka client is told.

What a client is told travels as an error code inside a result (``mockbroker.state.results``); on
its way there it may be a ``Refusal``, which never leaves this package.

::

    kproto.KprotoError
    └── ClusterError            a command that the simulated cluster cannot carry out
        ├── ControllerDiedError     it was told to die in the midst of this, and did
        ├── NotControllerError      there is no controller, or it went before it got to this
        ├── UnreadableError         Kafka's own class for the request refuses to be made of it
        ├── FaultError              a rule of faults that makes no sense: file, line, rule
        ├── UnknownBrokerError      no broker of that id was registered
        └── UnknownPartitionError   no such topic, or no such partition in it
"""

from __future__ import annotations

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
]


class ClusterError(KprotoError, ValueError):
    """A step, a setting or a description of a cluster that makes no sense; one line says why."""


class ControllerDiedError(ClusterError):
    """The controller died before it could finish; the action log says how far it got."""

    def __init__(self, broker_id: int) -> None:
        super().__init__(f"broker {broker_id} died in the midst of this, as it was told to")
        self.broker_id = broker_id


class NotControllerError(ClusterError):
    """There is no controller, or it resigned before it got to a request in its queue. Clients get
    NOT_CONTROLLER(41) and look for the next one."""


class UnreadableError(ClusterError):
    """Bytes that follow the schema, and that Kafka's class for the request refuses while it reads
    them: a broker closes the connection, as over bytes that do not."""


class FaultError(ClusterError):
    """A rule of faults that cannot be used. ``source`` is the file, empty where there is none;
    ``line`` counts from 1, None where the format has no lines to tell; ``rule`` is its name or
    its number."""

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
    """A broker id that was never registered."""


class UnknownPartitionError(ClusterError, LookupError):
    """A topic or partition that does not exist."""


class Refusal(Exception):
    """A request, or a part of one, that Kafka answers with an error code.

    ``message`` is None where the answer carries no text of its own: Kafka sends null when the text
    would only be the code's generic one.
    """

    def __init__(self, code: int, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
