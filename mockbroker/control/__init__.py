"""The HTTP control port: the steps of ``MockCluster``, and all there is to see of it, from another
process or language.

``routes`` is what a route is, ``table`` all of them, ``server`` serves that table and ``openapi``
documents it. Every error is ``{"error": one line}``. No client of Kafka's talks to this port, and
nothing about Kafka's wire is known here.
"""

from __future__ import annotations

from mockbroker.commands import COMMANDS
from mockbroker.control.server import ControlServer
from mockbroker.control.table import ROUTES

__all__ = ["COMMANDS", "ROUTES", "ControlServer"]
