"""What a tester does to a running cluster or to a proxy: each operation is declared once.

A module of ``subjects`` declares the operations on one subject: functions with the decorator
``operation``. Everything else is derived from ``OPERATIONS``: the methods of ``MockCluster`` and of
its siblings (``methods``), ``mockbroker ctl``, the control port's routes and their OpenAPI
document, the steps of fault rules, scenarios, the steps of kspec cases, and the reference.

An operation is called in Python (``mock.join_isr("foo-0", 4)``), written as text
(``join-isr foo-0 4``) or sent as a JSON object (``{"partition": "foo-0", "broker": 4}``). Nothing
here knows sockets or HTTP.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Final

from mockbroker.simulation.operations import subjects
from mockbroker.simulation.operations.arguments import (
    DEFAULT_BODY_BYTES,
    MILLISECONDS,
    Argument,
    ArgumentType,
    BrokerChoice,
    Place,
)
from mockbroker.simulation.operations.operation import (
    OPERATIONS,
    PROXY_OPERATIONS,
    Operation,
    OperationCall,
    RunningCluster,
    Sockets,
)
from mockbroker.simulation.operations.parsing import parse_operation

__all__ = [
    "ALL_OPERATIONS",
    "DEFAULT_BODY_BYTES",
    "MILLISECONDS",
    "OPERATIONS",
    "PROXY_OPERATIONS",
    "Argument",
    "ArgumentType",
    "BrokerChoice",
    "Operation",
    "OperationCall",
    "Place",
    "RunningCluster",
    "Sockets",
    "parse_operation",
]

for _module in pkgutil.iter_modules(subjects.__path__):
    importlib.import_module(f"{subjects.__name__}.{_module.name}")

ALL_OPERATIONS: Final[Mapping[str, Operation]] = {**OPERATIONS, **PROXY_OPERATIONS}
"""What a fault rule may name; it is refused where it is added to the other of the two."""
