"""A fault rule as plain data: the same from Python, a file and HTTP.

``docs/reference/faults.md`` documents every member. ``matching`` decides which requests a rule
takes, and ``conflicts`` which members it can combine.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from kproto.framing import SIZE_LENGTH
from kproto.near_names import with_suggestion
from kproto.schema.versions import Versions
from mockbroker.errors import ClusterError, FaultError
from mockbroker.faults.conflicts import conflict
from mockbroker.faults.damaged_records import Corruption
from mockbroker.simulation.operations import ALL_OPERATIONS, parse_operation
from mockbroker.simulation.state.option_types import parse_milliseconds

__all__ = ["CloseWith", "Disconnect", "ErrorAt", "Fault", "Place", "Swap", "TagLocation"]

ErrorAt: TypeAlias = Literal["top", "topic", "partition", "element", "all"]
Disconnect: TypeAlias = Literal["before", "after", "answered"]
CloseWith: TypeAlias = Literal["fin", "half-close", "reset"]
Place: TypeAlias = Literal["before", "after"]
TagLocation: TypeAlias = Literal["header", "body", "elements"]
Swap: TypeAlias = Literal["order", "ids"]

_WHICH: Final = frozenset(
    {
        "name", "broker", "listener", "api", "version", "client_id", "software",
        "software_version", "topic", "partition", "group", "member", "transactional_id",
        "producer_id", "connection",
        "nth", "probability", "seed", "times", "expires",
    }
)  # fmt: skip
"""Members that select requests, and how many of them; the others say what happens."""
DURATION_MEMBERS: Final = ("expires", "delay", "throttle", "hold_for", "split_delay")
"""Members that are durations, stored as milliseconds."""
_LONGEST_MS: Final = 10**12
_HEX: Final = ("unknown_tag_data", "trailing", "raw", "follow_with")
_MOST_MORE: Final = 100_000
_INT32: Final = (-(2**31), 2**31 - 1)
_BOUNDS: Final[dict[str, tuple[int, int]]] = {
    "times": (1, 10**9),
    "throttle": (0, 2**31 - 1),
    "unknown_tag": (0, 2**32 - 1),
    "as_version": (0, 32767),
    "length": _INT32,
    "length_off_by": _INT32,
    "correlation_id": _INT32,
    "correlation_off_by": _INT32,
    "unsolicited_correlation_id": _INT32,
    "garbage": (1, 1 << 20),
    "tls_alert": (0, 255),
    "split": (1, 1 << 20),
    "hold_responses": (1, 10_000),
    "partition": (0, 2**31 - 1),
    "producer_id": (-1, 2**63 - 1),
}


class Fault(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Which requests the rule takes, how many, and what happens to them.

    Durations are milliseconds, or text such as ``500ms`` and ``2s``; ranges are a number, or text
    such as ``1-3`` and ``2+``; bytes are hex. Each is stored in one form, so that equivalent rules
    compare equal. Raises FaultError for invalid members and combinations.
    """

    name: str = ""

    # ---- which requests: every member given must match --------------------------------------
    broker: int | None = None
    listener: str | None = None
    api: int | str | None = None
    version: int | str | None = None
    client_id: str | None = None
    software: str | None = None
    software_version: str | None = None
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    member: str | None = None
    transactional_id: str | None = None
    producer_id: int | None = None
    connection: int | str | None = None
    nth: int | str | None = None
    probability: float | None = None
    seed: int = 0

    # ---- how many requests, and how long -----------------------------------------------------
    times: int | None = None
    expires: int | str | None = None
    observe: bool = False

    # ---- steps of the cluster ---------------------------------------------------------------
    apply: bool | None = None
    steps_before: tuple[str, ...] = ()
    steps_after: tuple[str, ...] = ()

    # ---- the response message ----------------------------------------------------------------
    reply: dict[str, Any] | None = None
    error: int | str | None = None
    error_message: str | None = None
    error_at: ErrorAt | None = None
    throttle: int | str | None = None
    as_version: int | None = None
    unknown_tags: tuple[TagLocation, ...] = ()
    unknown_tag: int = 9999
    unknown_tag_data: str = "00"
    set: dict[str, Any] = {}
    set_length: dict[str, int] = {}
    set_bytes: dict[str, str] = {}
    more: dict[str, int] = {}
    replace_bytes: dict[str, str] = {}
    corrupt: Corruption | None = None

    # ---- the bytes of the response -----------------------------------------------------------
    correlation_id: int | None = None
    correlation_off_by: int | None = None
    trailing: str | None = None
    length: int | None = None
    length_off_by: int | None = None
    truncate: int | None = None
    raw: str | None = None
    garbage: int | None = None
    tls_alert: int | None = None
    follow_with: str | None = None
    unsolicited: Place | None = None
    unsolicited_correlation_id: int | Literal["own"] | None = None

    # ---- when the response goes out, and the end of the connection ---------------------------
    never_answer: bool = False
    delay: int | str | None = None
    hold_responses: int | None = None
    hold_for: int | str | None = None
    swap: Swap | None = None
    split: int | None = None
    split_delay: int | str | None = None
    disconnect: Disconnect | None = None
    close_with: CloseWith | None = None

    def __post_init__(self) -> None:
        try:
            self._normalise()
        except FaultError:
            raise
        except (TypeError, AttributeError) as error:  # rules made in Python are not type-checked
            raise FaultError(f"a member has the wrong type: {error}") from None
        except ClusterError as error:
            raise FaultError(str(error), rule=self.name) from None
        problem = conflict(self.to_dict())
        if problem is not None:
            raise FaultError(problem, rule=self.name)

    def _normalise(self) -> None:
        for name in DURATION_MEMBERS:
            self._keep(name, _milliseconds(name, getattr(self, name)))
        for name in _HEX:
            self._keep(name, _hex(name, getattr(self, name)))
        changed = {
            path: _hex(f"set_bytes of {path!r}", each) for path, each in self.set_bytes.items()
        }
        self._keep("set_bytes", changed)
        replaced = {_extent(at): _hex(f"replace_bytes of {at!r}", each)
                    for at, each in self.replace_bytes.items()}  # fmt: skip
        self._keep("replace_bytes", replaced)
        self._keep("error", _error_code(self.error))
        self._keep("version", _range("version", self.version, 0))
        self._keep("nth", _range("nth", self.nth, 1))
        self._keep("connection", _range("connection", self.connection, 1))
        for name in ("steps_before", "steps_after"):
            steps = getattr(self, name)
            if isinstance(steps, str):
                raise FaultError(f"{name} must be a list of steps, not a string")
            self._keep(name, tuple(_operation(name, step) for step in steps))
        self._keep("unknown_tags", tuple(self.unknown_tags))
        for name, (lowest, highest) in _BOUNDS.items():
            value = getattr(self, name)
            if value is not None and value != "own" and not lowest <= value <= highest:
                raise FaultError(f"{name} is {value}; it must be between {lowest} and {highest}")
        for path, count in self.more.items():
            if not 1 <= count <= _MOST_MORE:
                raise FaultError(
                    f"more of {path!r} is {count}; it must be between 1 and {_MOST_MORE}"
                )
        if self.probability is not None and not 0 < self.probability <= 1:
            raise FaultError(f"probability is {self.probability}; it must be above 0 and at most 1")

    def _keep(self, name: str, value: Any) -> None:
        if value != getattr(self, name):
            msgspec.structs.force_setattr(self, name, value)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.to_dict().items())
        return f"Fault({given})"

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as JSON values, without members that have their default."""
        given = msgspec.to_builtins(self)
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in given.items()
        }

    def describe_actions(self) -> str:
        """Describe in one line what the rule does to the requests it takes."""
        given = self.to_dict()
        return ", ".join(
            f"{name} {_shown(name, value)}" for name, value in given.items() if name not in _WHICH
        )

    def describe(self) -> str:
        """Describe in one line every member given, except the name."""
        given = self.to_dict()
        return " ".join(
            f"{name}={_shown(name, value)}" for name, value in given.items() if name != "name"
        )


def _shown(name: str, value: object) -> str:
    return f"{value}ms" if name in DURATION_MEMBERS else str(value)


def _operation(name: str, step: str) -> str:
    try:
        return str(parse_operation(str(step), relative_brokers=True, operations=ALL_OPERATIONS))
    except ClusterError as error:
        raise FaultError(f"{name}: {error}") from None


def _milliseconds(name: str, value: int | str | None) -> int | None:
    found = parse_milliseconds(value) if isinstance(value, str) else value
    if found is not None and not 0 <= found <= _LONGEST_MS:
        raise FaultError(f"{name} is {value} ms; it must be between 0 and {_LONGEST_MS}")
    return found


def _hex(name: str, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return bytes.fromhex(text).hex()
    except ValueError as error:
        raise FaultError(f"{name} must be hex, two digits per byte: {error}") from None


def _extent(given: str) -> str:
    """``37+4``: four bytes at offset 37. The four bytes of the size cannot be replaced."""
    found = re.fullmatch(r"([0-9]{1,10})[+]([0-9]{1,10})", given)
    if found is None or int(found[1]) < SIZE_LENGTH:
        raise FaultError(
            f"replace_bytes: {given!r} is not OFFSET+LENGTH, such as 37+4, with an offset of at "
            f"least {SIZE_LENGTH}"
        )
    return f"{int(found[1])}+{int(found[2])}"


def _error_code(given: int | str | None) -> int | None:
    if isinstance(given, str) and re.fullmatch(r"-?[0-9]{1,5}", given):
        given = int(given)
    if isinstance(given, str):
        try:
            return int(ErrorCode[given.upper()])
        except KeyError:
            problem = f"unknown error {given!r:.80}"
            hint = "use a name such as NOT_CONTROLLER, or a number"
            names = ErrorCode.__members__
            raise FaultError(with_suggestion(problem, given, names, otherwise=hint)) from None
    if given is not None and not -32768 <= given <= 32767:
        raise FaultError(f"error is {given}, which is no int16")
    return given


def _range(name: str, given: int | str | None, lowest: int) -> str | None:
    """Return the shortest text of a range: "3" for ``3``, ``"3"`` and ``"3-3"``."""
    if given is None:
        return None
    text = str(given).strip()
    if isinstance(given, bool) or not re.fullmatch(r"[0-9]+(\+|-[0-9]+)?", text):
        raise FaultError(f"{name} is {given!r}; use a number or a range, such as 3, 1-4 or 2+")
    try:
        found = Versions.parse(text)
    except ValueError as error:
        raise FaultError(f"{name}: {error}") from None
    if found.lowest < lowest:
        raise FaultError(f"{name} counts from {lowest}; {given!r} begins below")
    return str(found)
