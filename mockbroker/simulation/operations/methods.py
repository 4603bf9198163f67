"""The operations as Python methods. The stubs of the classes that have them are generated::

python -m scripts.operation_stubs
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mockbroker.simulation.operations import OPERATIONS, Operation, OperationCall

__all__ = ["OperationMethods"]


class OperationMethods:
    """Has a method for each operation, which returns what ``carry_out`` returns."""

    def carry_out(self, call: OperationCall) -> Any:
        """Carry out an operation. Raises ClusterError if the cluster cannot."""
        raise NotImplementedError


def _method(operation: Operation) -> Callable[..., Any]:
    signature = operation.signature

    def method(*arguments: Any, **options: Any) -> Any:
        bound = signature.bind(*arguments, **options).arguments
        return bound["self"].carry_out(operation.call(bound))

    hints = {each.parameter: each.accepts for each in operation.arguments}
    method.__name__ = operation.method
    method.__qualname__ = f"{OperationMethods.__name__}.{operation.method}"
    method.__doc__ = f"{operation.help}\n\n{operation.details}".rstrip()
    method.__annotations__ = {**hints, "return": operation.returns}
    vars(method)["__signature__"] = signature
    return method


for _operation in OPERATIONS.values():
    setattr(OperationMethods, _operation.method, _method(_operation))
