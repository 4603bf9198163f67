"""The text of an operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kproto.near_names import with_suggestion
from mockbroker.errors import ClusterError
from mockbroker.simulation.operations.operation import OPERATIONS, Operation, OperationCall

__all__ = ["parse_operation"]


def parse_operation(
    text: str, *, relative_brokers: bool = False, operations: Mapping[str, Operation] = OPERATIONS
) -> OperationCall:
    """Read ``failover 2``, ``join-isr foo-0 4``, ``advance 500ms``. Raises ClusterError.

    ``relative_brokers``: ``self`` and ``other`` may stand for a broker id.
    """
    name, rest = _first_word(text)
    operation = operations.get(name)
    if operation is None:
        problem = f"{text!r} is not an operation"
        others = f"the operations are {', '.join(operations)}"
        raise ClusterError(with_suggestion(problem, name, operations, otherwise=others))
    values: dict[str, Any] = {}
    for argument in operation.arguments:
        word, rest = (rest, "") if argument.type.to_end else _first_word(rest)
        if argument.optional and not word:
            values[argument.name] = None
            continue
        if not word and not argument.type.to_end:
            raise ClusterError(f"{text!r} lacks an argument; use `{operation.usage}`")
        try:
            values[argument.name] = argument.from_text(word, relative_brokers=relative_brokers)
        except ClusterError as error:
            raise ClusterError(f"{text!r}: {error}") from None
    if rest:
        raise ClusterError(f"{text!r} has too many arguments; use `{operation.usage}`")
    return OperationCall(operation, values)


def _first_word(text: str) -> tuple[str, str]:
    word, *rest = text.split(maxsplit=1) or [""]
    return word, rest[0].rstrip() if rest else ""
