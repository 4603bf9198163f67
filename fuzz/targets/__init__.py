"""The targets as data. Only ``load`` imports their code, because a guide must be in place before
the code that it instruments is imported.

The guides: ``python`` is atheris, which sees lines and comparisons of Python code; ``c`` is
libFuzzer over the extensions built with its counters, AddressSanitizer and UBSan (``fuzz/native``);
``none`` mutates without feedback and needs only Python.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol, cast

__all__ = ["TARGETS", "Target", "TargetModule", "load"]


class Target(NamedTuple):
    """``under_test`` are modules, and packages with everything in them. ``modules`` are the extras'
    modules that must be importable."""

    name: str
    under_test: tuple[str, ...]
    guides: tuple[str, ...] = ("python",)
    max_length: int = 4096
    modules: tuple[str, ...] = ()


class TargetModule(Protocol):
    """A module of this package. It may also have ``mutate(data, max_size, rng, plainly)``, where
    ``plainly`` is the guide's own mutation."""

    __name__: str
    __doc__: str | None

    def check(self, data: bytes) -> None:
        """Raise if the target's invariant does not hold."""

    def seeds(self) -> Iterator[bytes]:
        """Yield initial inputs, the same ones each time."""


_CODECS: Final = (
    "kproto.codegen",
    "kproto.codec",
    "kproto.native.compiled",
    "kproto.native.describe",
)
_COMPRESSION: Final = ("cramjam", "lz4.frame")

_ALL: Final = (
    Target("schema", ("kproto.schema",)),
    Target("bodies", _CODECS, ("python", "c")),
    Target("columns", ("kproto.columns",), ("python", "c")),
    Target("json", ("kproto.codec.json_form", "kproto.codec.json_writer")),
    Target("frames", ("kproto.framing", "kproto.dialects", "kproto.connection")),
    Target("records", ("kproto.records",), ("python", "c"), 8192, _COMPRESSION),
    Target("captures", ("wiredump.readers", "wiredump.sources.captures",
                        "wiredump.sources.native_connections", "wiredump.sources.quick",
                        "wiredump.pairing", "wiredump.open_requests", "wiredump.conversation",
                        "wiredump.frames", "wiredump.frame_boundaries", "wiredump.recognition"),
           ("python", "c"), 16_384),
    Target("texts", ("wiredump.sources.hexadecimal", "wiredump.sources.journals",
                     "wiredump.sources.request_logs", "kproto.journal")),
    Target("control", ("mockbroker.control", "mockbroker.simulation.topics.spec",
                       "mockbroker.serving.served_versions",
                       "mockbroker.controls", "mockbroker.simulation.operations",
                       "mockbroker.serving.fault_operations"),
           modules=("aiohttp",)),
    Target("faults", ("mockbroker.faults",), modules=("yaml",)),
    Target("replay", ("kproto.transcript", "mockbroker.replay",
                      "mockbroker.serving.replay_stage")),
    Target("sasl", ("mockbroker.simulation.security.sasl", "kproto.client.sasl"), max_length=1024,
           modules=("scramp",)),
    Target("znodes", ("kproto.znodes.kafka_znodes", "kproto.znodes.plan_znodes",
                      "kproto.znodes.request_znodes", "kproto.znodes.texts")),
)  # fmt: skip

TARGETS: Final = {target.name: target for target in _ALL}


def load(target: Target) -> TargetModule:
    """Import a target. Raises ImportError if one of its modules is not installed."""
    for module in target.modules:
        importlib.import_module(module)
    return cast(TargetModule, importlib.import_module(f"fuzz.targets.{target.name}"))
