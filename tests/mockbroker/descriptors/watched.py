"""Runs ``mockbroker`` and reports every file that it opens once it has printed its first line.

Each file is a line on standard error: ``OPENED`` with the event and the frames that led to it. The
first line there, ``DEFERRED`` with JSON, lists the imports inside functions of kproto and
mockbroker whose module was not imported by then.

    python -m tests.mockbroker.descriptors.watched serve --brokers 1
"""

import ast
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mockbroker.cli import main

__all__ = ["deferred_imports"]

ROOT: Final = Path(__file__).resolve().parents[3]
EVENTS: Final = frozenset({"open", "import", "os.listdir", "os.scandir", "subprocess.Popen"})
FRAMES: Final = 12

_report: Final = os.dup(2)


def _say(text: str) -> None:
    os.write(_report, text.encode() + b"\n")


class _FirstLine:
    """Standard output that begins to watch before it writes the first line."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._watching = False

    def write(self, text: str) -> int:
        if "\n" in text and not self._watching:
            self._watching = True
            _say("DEFERRED " + json.dumps(sorted(deferred_imports())))
            sys.addaudithook(_watch)
        written: int = self._stream.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in EVENTS:
        return
    frame = sys._getframe().f_back  # None where uvloop calls the hook
    places: list[str] = []
    while frame is not None and len(places) < FRAMES:
        if "importlib" not in frame.f_code.co_filename:
            places.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
        frame = frame.f_back
    _say(f"OPENED {event} {arguments[0]!r} {' < '.join(places)}")


# ---- imports inside functions --------------------------------------------------------------------


def deferred_imports() -> Iterator[tuple[str, str]]:
    """The module that has the import, and the module that it would import."""
    for name, module in sorted(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if name.partition(".")[0] not in ("kproto", "mockbroker") or path is None:
            continue
        if not path.endswith(".py"):
            continue
        for wanted in _inside_functions(ast.parse(Path(path).read_text("utf-8"))):
            if wanted not in sys.modules:
                yield name, wanted


def _inside_functions(tree: ast.Module) -> Iterator[str]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    yield from (each.name for each in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    yield node.module
                    for each in node.names:
                        if _is_module(node.module, each.name):
                            yield f"{node.module}.{each.name}"


def _is_module(package: str, name: str) -> bool:
    folder = ROOT / package.replace(".", "/")
    return (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file()


if __name__ == "__main__":
    sys.stdout = _FirstLine(sys.stdout)  # type: ignore[assignment]
    main()
