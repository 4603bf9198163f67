"""Out of the buffers: pyarrow takes them as they are, and finds nothing wrong with them."""

from __future__ import annotations

import builtins
import importlib
import uuid
from typing import Any

import pyarrow
import pytest

import kproto
from kproto.columns import select
from kproto.errors import MissingExtraError
from kproto.messages import HeartbeatRequest, MetadataResponse
from kproto.schema.load import load_directory, parse_message, schemas_directory
from kproto.codegen.classes import make_message_class
from tests.columns.exploded import lines
from tests.support import seeds
from tests.support.instances import to_instance
from tests.support.values import random_tree
