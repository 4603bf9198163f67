"""The APIs of the mock broker: their handlers, what handlers share, and the registry of both.

Importing this package registers every handler.
"""

from __future__ import annotations

from mockbroker.apis import handlers
from mockbroker.apis.registry import DRAFT_HANDLERS, HANDLERS, Call, Handler, Session, register

__all__ = ["DRAFT_HANDLERS", "HANDLERS", "Call", "Handler", "Session", "handlers", "register"]
