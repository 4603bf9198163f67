"""A mock cluster for one client: ``mockbroker serve`` as anyone would start it, and its controls.

One process a cluster, on ephemeral ports, ended with its journal when the client is done.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from demo.install import ROOT
from demo.story import BROKERS, CONTROLLER, TOPICS
from kproto.journal import Entry, read_journal

__all__ = ["ClusterError", "MockCluster", "start"]

START_SECONDS = 30.0
STOP_SECONDS = 5.0


class ClusterError(Exception):
    """The mock cluster did not start, or refused a step."""
