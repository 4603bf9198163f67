"""The codecs to compare with, each as a pair of calls on the same bytes.

kio and kafka-python come from the extra ``bench``. kio dropped LeaderAndIsr after 0.6.2, so that
release has an environment of its own in the cache and is timed by ``kio_worker``. kafka-python has
no LeaderAndIsr schema: its generator gets the one in ``schemas/kafka``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.kio_worker import operations as kio_operations
from benchmarks.timing import Case, calibrate, run_slice
from benchmarks.worker import Worker
from benchmarks.workloads import Workload
from kproto.builds import cache
from kproto.codec import registry
from kproto.schema.model import python_name

__all__ = ["generated", "kafka_python", "kio", "kio_place", "local_cases", "old_kio", "ours"]

ROOT = Path(__file__).resolve().parent.parent
OLD_KIO = "0.6.2"


def local_cases(calls: dict[str, Callable[[], object]]) -> dict[str, Case]:
    """Calibrated cases of this process, by operation."""

    def case(call: Callable[[], object]) -> Case:
        loops = calibrate(call)
        return lambda: run_slice(call, loops)

    return {operation: case(call) for operation, call in calls.items()}


def ours(workload: Workload, body: bytes) -> dict[str, Callable[[], object]]:
    """kproto's decode, encode and validate, on the engine in use."""
    message = workload.message()
    kind, version = type(message), workload.version
    assert kind.decode(body, version) == message
    return {
        "decode": lambda: kind.decode(body, version),
        "encode": lambda: message.encode(version),
        "validate": lambda: kind.validate(body, version),
    }


def generated(workload: Workload, body: bytes) -> dict[str, Callable[[], object]]:
    """Generated Python beside the native engine, entered as a message's methods enter it."""
    message = workload.message()
    kind, version = type(message), workload.version
    readers = {version: registry.generated_decoder(kind, version)}
    encoders = {version: registry.generated_encoder(kind, version)}

    def decode(data: bytes, version: int, *, allow_trailing: bool = False) -> object:
        if type(data) is not bytes:
            data = memoryview(data).tobytes()
        assert not allow_trailing
        made: object = readers[version](data)
        return made

    assert decode(body, version) == message
    return {"decode": lambda: decode(body, version), "encode": lambda: encoders[version](message)}


def kio_place(workload: Workload) -> tuple[str, str]:
    """Module and class of a workload's message in kio."""
    base, kind = re.fullmatch(r"(\w+)(Request|Response)", workload.title).groups()  # type: ignore[union-attr]
    module = f"kio.schema.{python_name(base)}.v{workload.version}.{kind.lower()}"
    return module, workload.title


def kio(workload: Workload, body: bytes) -> dict[str, Callable[[], object]]:
    """kio's decode (Rust) and encode (Python), in this process."""
    return kio_operations(*kio_place(workload), body)


def old_kio(workload: Workload, body: Path) -> Worker:
    """kio of the other release in a process of its own; ``body`` is a file."""
    script = str(ROOT / "benchmarks" / "kio_worker.py")
    return Worker([str(_old_kio_python()), script, *kio_place(workload), str(body)])


def _old_kio_python() -> Path:
    """The interpreter of the old release's environment, made and filled on first use."""
    folder = cache() / f"kio-{OLD_KIO}"
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    if not ready.exists():
        # Our own pip serves the new environment, so that this works without ensurepip too.
        venv.create(folder, clear=True, with_pip=False, symlinks=os.name != "nt")
        install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
        subprocess.run([*install, f"kio=={OLD_KIO}"], check=True)
        ready.touch()
    return python


def kafka_python(workload: Workload, body: bytes) -> dict[str, Callable[[], object]]:
    """kafka-python's decode and encode: functions it compiles from the message's JSON."""
    kind = _kafka_python_class(workload.title)
    version = workload.version
    message = kind.decode(body, version=version)
    message._header = None  # which its decode leaves unset and its encode reads
    encoded = message.encode(version=version)
    assert bytes(encoded) == body, f"kafka-python does not round-trip {workload.title}"
    return {
        "decode": lambda: kind.decode(body, version=version),
        "encode": lambda: message.encode(version=version),
    }


def _kafka_python_class(name: str) -> Any:
    from kafka.protocol import admin, consumer, metadata
    from kafka.protocol.api_message import ApiMessage

    for module in (admin, consumer, metadata):
        if hasattr(module, name):
            return getattr(module, name)
    schema = json.loads((ROOT / "schemas" / "kafka" / f"{name}.json").read_text())
    patch = {"json_patch": classmethod(lambda cls, json: json)}
    return type(ApiMessage)(name, (ApiMessage,), patch, load_json=_package_of(schema, name))


def _package_of(schema: dict[str, Any], name: str) -> str:
    """kafka-python reads schemas as package resources: lay this one out as a package's."""
    folder = cache() / "kafka_python_schemas"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(schema))
    if str(folder.parent) not in sys.path:
        sys.path.append(str(folder.parent))
    return folder.name
