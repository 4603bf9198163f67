"""What an operation is, how one is declared, and what it acts on."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, overload

import msgspec

from kproto.schema.versions import Versions
from mockbroker.simulation.operations.arguments import Argument, BrokerChoice, Level, Place

if TYPE_CHECKING:
    from mockbroker.simulation.brokers.upgrades import Software
    from mockbroker.simulation.cluster import Cluster

__all__ = [
    "OPERATIONS",
    "PROXY_OPERATIONS",
    "Operation",
    "OperationCall",
    "Paced",
    "Proxy",
    "RunningCluster",
    "SavedState",
    "Sockets",
    "operation",
]

T = TypeVar("T")
EffectT = TypeVar("EffectT", bound=Callable[..., Any])


# ---- what operations act on ----------------------------------------------------------------------


class Sockets(Protocol):
    """The sockets of a cluster's brokers."""

    async def close(self, broker_id: int) -> None: ...
    async def reopen(self, broker_id: int) -> None: ...
    def hang_up(self, broker_id: int) -> None: ...
    def advertise(self, broker_id: int, address: str) -> None: ...
    def set_latency(self, milliseconds: int, place: Place | None) -> None: ...
    def set_bandwidth(self, bytes_per_second: int, place: Place | None) -> None: ...


class SavedState(Protocol):
    """Remembers the state of a cluster. The checks raise ClusterError where that is impossible."""

    def check_snapshot(self) -> None: ...
    def check_reset(self) -> None: ...
    async def snapshot(self) -> None: ...
    async def reset(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """A simulated cluster with its sockets, its clock and its last snapshot.

    ``run`` runs a change of the simulated cluster, which may have to wait for its turn.
    ``then`` does something to the sockets: at once, or, for an operation of a fault rule, when the
    answer to the request is out. ``software`` returns the API versions of a level,
    ``release`` what a broker of a release runs.
    """

    cluster: Cluster
    sockets: Sockets
    saved: SavedState
    advance: Callable[[int], None]
    software: Callable[[Level], Mapping[int, Versions | None]]
    release: Callable[[str], Software]
    run: Callable[[Callable[[], object]], Awaitable[object]]
    then: Callable[[Callable[[], Awaitable[None] | None]], Awaitable[None]]

    def set_latency(self, milliseconds: int, place: Place | None) -> None:
        self.sockets.set_latency(milliseconds, place)

    def set_bandwidth(self, bytes_per_second: int, place: Place | None) -> None:
        self.sockets.set_bandwidth(bytes_per_second, place)

    async def change(self, effect: Callable[..., object], *arguments: object) -> None:
        """Change the simulated cluster in a turn of its own."""
        await self.run(partial(self._in_turn, effect, *arguments))

    def _in_turn(self, effect: Callable[..., object], *arguments: object) -> None:
        with self.cluster.turns.step():
            effect(*arguments)


class Paced(Protocol):
    """What passes bytes on, as a running cluster and a proxy do."""

    def set_latency(self, milliseconds: int, place: Place | None) -> None: ...
    def set_bandwidth(self, bytes_per_second: int, place: Place | None) -> None: ...


class Proxy(Paced, Protocol):
    """What a proxy can do."""

    def drop_upstream(self, broker_id: int) -> None: ...
    def refuse_upstream(self, broker_id: int) -> None: ...
    def allow_upstream(self, broker_id: int) -> None: ...


# ---- operations ----------------------------------------------------------------------------------


class Operation(msgspec.Struct, frozen=True):
    """``effect`` takes what the operation acts on, and the arguments by parameter.

    ``name`` is what texts and routes call it, ``method`` what Python does. ``help`` is one
    sentence, ``details`` what ``mockbroker ctl OPERATION --help`` adds to it. ``acts_on`` is
    ``Cluster``, ``RunningCluster``, ``Proxy``, or ``Paced`` for the last two. ``in_turn``: the
    effect runs in one turn of the simulated cluster.
    """

    name: str
    method: str
    help: str
    details: str
    arguments: tuple[Argument, ...]
    acts_on: str
    effect: Callable[..., Any]
    in_turn: bool

    @property
    def returns(self) -> Any:
        """The type that its effect returns."""
        return _meaning(self.effect, self.effect.__annotations__["return"])

    @property
    def subject(self) -> str:
        """The subject of the module that declares it: ``share groups``."""
        return self.effect.__module__.rpartition(".")[2].replace("_", " ")

    @property
    def usage(self) -> str:
        """``join-isr TOPIC-PARTITION BROKER``"""
        words = (f"[{each.metavar}]" if each.optional else each.metavar for each in self.arguments)
        return " ".join([self.name, *words])

    @property
    def waits(self) -> bool:
        """Whether its Python method is a coroutine."""
        return inspect.iscoroutinefunction(self.effect)

    @property
    def signature(self) -> inspect.Signature:
        """The signature of its Python method."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature(
            [
                inspect.Parameter("self", kind),
                *(
                    inspect.Parameter(
                        each.parameter,
                        kind,
                        default=None if each.optional else inspect.Parameter.empty,
                        annotation=each.accepts,
                    )
                    for each in self.arguments
                ),
            ],
            return_annotation=self.returns,
        )

    def call(self, bound: Mapping[str, Any]) -> OperationCall:
        """A call with the arguments of a Python method, by parameter. Raises ClusterError."""
        return OperationCall(
            self,
            {each.name: each.from_python(bound.get(each.parameter)) for each in self.arguments},
        )


class OperationCall(msgspec.Struct, frozen=True):
    """An operation with its arguments by name. ``str`` gives the text that ``parse_operation``
    reads."""

    operation: Operation
    values: Mapping[str, Any]

    def __str__(self) -> str:
        given = ((each, self.values[each.name]) for each in self.operation.arguments)
        words = [
            each.type.to_text(value)
            for each, value in given
            if not (each.optional and value is None)
        ]
        return " ".join([self.operation.name, *words])

    def run(self, target: RunningCluster | Proxy) -> Any:
        """Carry it out. Returns what the operation returns, or a coroutine if it ``waits``. Raises
        ClusterError if the target cannot carry it out."""
        values = {each.parameter: self.values.get(each.name) for each in self.operation.arguments}
        effect = self.operation.effect
        if self.operation.acts_on != "Cluster":
            return effect(target, **values)
        assert isinstance(target, RunningCluster)
        if not self.operation.in_turn:
            return effect(target.cluster, **values)
        with target.cluster.turns.step():
            return effect(target.cluster, **values)

    def run_at_once(self, target: RunningCluster) -> Any:
        """Carry it out on a target on which nothing waits."""
        result = self.run(target)
        return _result_of(result) if self.operation.waits else result

    def with_broker(self, choose: Callable[[BrokerChoice], int]) -> OperationCall:
        """The same call with ``self`` and ``other`` replaced by broker ids."""
        if self.values.get("broker") is None:
            return self
        return OperationCall(
            self.operation, {**self.values, "broker": choose(self.values["broker"])}
        )


def _result_of(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("an operation waits where it must not")


# ---- declarations --------------------------------------------------------------------------------

OPERATIONS: Final[dict[str, Operation]] = {}
"""The operations on a mock cluster, by name."""

PROXY_OPERATIONS: Final[dict[str, Operation]] = {}
"""The operations on a proxy, by name."""


@overload
def operation(effect: EffectT, /) -> EffectT: ...
@overload
def operation(*, name: str | None = None, in_turn: bool = True) -> Callable[[EffectT], EffectT]: ...
def operation(
    effect: Callable[..., Any] | None = None, /, *, name: str | None = None, in_turn: bool = True
) -> Any:
    """Declare the decorated function as the effect of an operation::

        @operation
        def hold_commits(cluster: Cluster, group: GroupArgument) -> None:
            \"\"\"Hold the offset commits of a group.

            Until `release-commits`, commits are neither answered nor visible.
            \"\"\"
            cluster.offsets.hold_commits(group)

    The function's name is the method's, and with hyphens that of the operation. The first paragraph
    of its docstring is the help, the rest the details. Its first parameter says what the operation
    acts on, the others are annotated with their arguments; one with a default is optional. Without
    ``in_turn`` the effect takes its turns itself, or needs none.
    """
    if effect is None:
        return partial(_declare, name, in_turn)
    return _declare(None, in_turn, effect)


def _declare(name: str | None, in_turn: bool, effect: EffectT) -> EffectT:
    acts_on, *parameters = effect.__code__.co_varnames[: effect.__code__.co_argcount]
    required = len(parameters) - len(effect.__defaults__ or ())
    head, _, rest = inspect.cleandoc(effect.__doc__ or "").partition("\n\n")
    made = Operation(
        name or effect.__name__.replace("_", "-"),
        effect.__name__,
        " ".join(head.split()),
        " ".join(rest.split()),
        tuple(
            _argument(effect, parameter, optional=place >= required)
            for place, parameter in enumerate(parameters)
        ),
        effect.__annotations__[acts_on],
        effect,
        in_turn,
    )
    if made.acts_on != "Proxy":
        OPERATIONS[made.name] = made
    if made.acts_on in ("Proxy", "Paced"):
        PROXY_OPERATIONS[made.name] = made
    return effect


def _argument(effect: Callable[..., Any], parameter: str, *, optional: bool) -> Argument:
    argument: Argument
    (argument,) = _meaning(effect, effect.__annotations__[parameter]).__metadata__
    return msgspec.structs.replace(
        argument, name=argument.name or parameter, parameter=parameter, optional=optional
    )


def _meaning(effect: Callable[..., Any], annotation: str) -> Any:
    """What an annotation of an effect says. Most are names, and looking one up takes a tenth of
    what evaluating it does: 400 evaluations would be felt at the start."""
    if annotation == "None":
        return None
    names = effect.__globals__
    # Modules of operations import what they act on for type checkers alone.
    return names[annotation] if annotation in names else eval(annotation, names, {"Cluster": Any})
