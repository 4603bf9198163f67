"""The HTTP control port: the operations and the state of a ``MockCluster`` for other processes and
languages.

``routes`` defines what a route is, ``route_table`` lists them all, ``server`` serves that list and
``openapi`` documents it. Every error is ``{"error": one line}``. Kafka clients never connect to
this port, and nothing here knows the Kafka protocol.
"""

from __future__ import annotations

from mockbroker.control.route_table import ROUTES
from mockbroker.control.server import ControlServer
from mockbroker.simulation.operations import OPERATIONS

__all__ = ["OPERATIONS", "ROUTES", "ControlServer"]
