"""Find modules that import each other in a circle, and C files that use each other in one.

Every import statement counts: those under ``if TYPE_CHECKING`` and those inside functions, too. An
import of a submodule is not one of its package, and names that a package's ``__getattr__`` resolves
are not followed. A C file uses another one of its folder if one of its functions or tables names a
function that the other one defines; prototypes and types do not count, and a header counts as part
of the C file with its name. A circle is a strongly connected component of two or more modules or C
files.

    python -m scripts.import_cycles             # circles, each with a shortest way round
    python -m scripts.import_cycles --json
    python -m scripts.import_cycles --sizes     # lines, files and functions by package

Exits with 1 if there is a circle that ``ACCEPTED`` does not list. An entry without a circle is
reported. ``make lint`` runs this.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

__all__ = [
    "ACCEPTED", "Accepted", "Cycle", "c_files", "c_uses", "cycles", "imports", "main", "modules",
    "sizes",
]  # fmt: skip

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("kproto", "mockbroker", "wiredump", "kspec", "fuzz")
GENERATED = "kproto/messages/*"
"""Left out of ``--sizes``: it would dwarf the rest."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """Circles may consist of modules that match one of ``patterns``."""

    patterns: tuple[str, ...]
    reason: str


ACCEPTED: tuple[Accepted, ...] = ()


@dataclass(frozen=True, slots=True)
class Cycle:
    """``modules`` all reach each other; ``path`` is a shortest way round, without its return."""

    modules: tuple[str, ...]
    path: tuple[str, ...]


Graph = Mapping[str, Mapping[str, int]]
"""By module, the modules that it imports, each with the line of the first import."""

# ---- imports -------------------------------------------------------------------------------------


def modules(root: Path = ROOT, packages: Sequence[str] = PACKAGES) -> dict[str, Path]:
    """The modules of the packages, by dotted name."""
    found = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(files: Mapping[str, Path]) -> dict[str, dict[str, int]]:
    """Which of the modules each of them imports."""
    graph: dict[str, dict[str, int]] = {}
    for module, path in files.items():
        edges: dict[str, int] = {}
        graph[module] = edges
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
            for name in _imported(node, package):
                target = name if name in files else name.rpartition(".")[0]
                if target in files and target != module:
                    edges[target] = min(node.lineno, edges.get(target, sys.maxsize))  # type: ignore[attr-defined]
    return graph


def _imported(node: ast.AST, package: str) -> Iterator[str]:
    """The dotted names that a statement imports; the last part may be a member of a module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        origin = ".".join([*base, *([node.module] if node.module else [])])
        yield from (f"{origin}.{alias.name}" for alias in node.names)


# ---- C -------------------------------------------------------------------------------------------

_NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_]\w*")
_FUNCTION = re.compile(r"(\w+)\s*\([^;={}]*\)\s*$")


def c_files(root: Path = ROOT, packages: Sequence[str] = PACKAGES) -> dict[str, Path]:
    """The C files and headers of the packages, by their path."""
    found = (path for package in packages for path in sorted((root / package).rglob("*.[ch]")))
    return {str(path.relative_to(root)): path for path in found}


def c_uses(files: Mapping[str, Path]) -> dict[str, dict[str, int]]:
    """Which of the C files in the same folder each of them uses, with the line of the first use."""
    blocks = {name: list(_blocks(path.read_text())) for name, path in files.items()}
    part_of = {name: f"{name[:-1]}c" if f"{name[:-1]}c" in files else name for name in files}
    graph: dict[str, dict[str, int]] = {name: {} for name in files}
    for name, own in blocks.items():
        defined = {
            function: part_of[other]
            for other in files
            if part_of[other] != part_of[name] and files[other].parent == files[name].parent
            for function, is_static, _, _ in blocks[other]
            if function and not (is_static and other.endswith(".c"))
        }
        local = {function for function, _, _, _ in own}
        for _, _, first_line, body in own:
            for match in _NAME.finditer(body):
                target = defined.get(match[0])
                if target is not None and match[0] not in local:
                    line = first_line + body.count("\n", 0, match.start())
                    uses = graph[part_of[name]]
                    uses[target] = min(line, uses.get(target, line))
    return graph


def _blocks(source: str) -> Iterator[tuple[str, bool, int, str]]:
    """The functions of a C file, and its tables with an empty name: the name, whether it is static,
    the line where its block begins, and the block."""
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])  # noqa: E731
    code = _DIRECTIVE.sub(blank, _NO_CODE.sub(blank, source))
    start = depth = opened = 0
    for match in re.finditer(r"[{};]", code):
        if match[0] == "{":
            opened = match.start() if depth == 0 else opened
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                head = code[start:opened]
                function = _FUNCTION.search(head.rstrip())
                name = function[1] if function else ""
                if name or "=" in head:
                    line = code.count("\n", 0, opened) + 1
                    yield name, "static" in head, line, code[opened : match.end()]
                if name:
                    start = match.end()
        elif depth == 0:
            start = match.end()


# ---- circles -------------------------------------------------------------------------------------


def cycles(graph: Graph) -> list[Cycle]:
    """The circles, the largest first."""
    found = [
        Cycle(tuple(sorted(component)), _shortest(graph, component))
        for component in _components(graph)
        if len(component) > 1
    ]
    return sorted(found, key=lambda cycle: (-len(cycle.modules), cycle.modules))


def _components(graph: Graph) -> Iterator[set[str]]:
    """Strongly connected components: Tarjan's algorithm, without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            module, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[module])
                if low[module] == index[module]:
                    cut = stack.index(module)
                    component = set(stack[cut:])
                    del stack[cut:]
                    on_stack -= component
                    yield component
            elif target not in index:
                index[target] = low[target] = len(index)
                stack.append(target)
                on_stack.add(target)
                work.append((target, iter(graph[target])))
            elif target in on_stack:
                low[module] = min(low[module], index[target])


def _shortest(graph: Graph, component: set[str]) -> tuple[str, ...]:
    """A shortest circle inside a component: breadth-first from each of its modules."""
    best: tuple[str, ...] = ()
    for start in sorted(component):
        before: dict[str, str] = {}
        queue = deque([start])
        while queue and start not in before:
            module = queue.popleft()
            for target in graph[module]:
                if target in component and target not in before:
                    before[target] = module
                    queue.append(target)
        path = [before[start]]
        while path[-1] != start:
            path.append(before[path[-1]])
        if not best or len(path) < len(best):
            best = tuple(reversed(path))
    return best


# ---- sizes ---------------------------------------------------------------------------------------


def sizes(root: Path = ROOT, packages: Sequence[str] = PACKAGES) -> list[dict[str, Any]]:
    """Lines, files and functions of each package and its folders; generated modules left out.

    A folder's counts include those of its own folders, and "C" counts .c and .h files.
    """
    rows: dict[str, dict[str, Any]] = {}
    for package in packages:
        for path in sorted((root / package).rglob("*")):
            relative = path.relative_to(root)
            if path.suffix not in (".py", ".c", ".h") or fnmatchcase(str(relative), GENERATED):
                continue
            source = path.read_bytes()
            counts = {"files": 1, "lines": source.count(b"\n"), "functions": 0, "c_lines": 0}
            if path.suffix == ".py":
                tree = ast.parse(source, str(path))
                functions = (ast.FunctionDef, ast.AsyncFunctionDef)
                counts["functions"] = sum(isinstance(node, functions) for node in ast.walk(tree))
            else:
                counts = {"files": 0, "lines": 0, "functions": 0, "c_lines": counts["lines"]}
            for name in {package, ".".join(relative.parts[:-1][:2])}:
                row = rows.setdefault(name, {"package": name, **dict.fromkeys(counts, 0)})
                for key, count in counts.items():
                    row[key] += count
    return [rows[name] for name in sorted(rows)]


# ---- command line --------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.import_cycles",
        description="Find circles of imports; type-only imports and those in functions count.",
    )
    parser.add_argument(
        "--sizes", action="store_true", help="count lines, files and functions by package instead"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    if options.sizes:
        return _print_sizes(options.json)
    files = {**modules(), **c_files()}
    python = {name: path for name, path in files.items() if path.suffix == ".py"}
    graph = {**imports(python), **c_uses(c_files())}
    found = cycles(graph)
    new = [cycle for cycle in found if _accepted_by(cycle) is None]
    used = {_accepted_by(cycle) for cycle in found}
    unused = [accepted for accepted in ACCEPTED if accepted not in used]
    if options.json:
        listed = [
            {"modules": cycle.modules, "path": cycle.path, "accepted": cycle not in new}
            for cycle in found
        ]
        print(json.dumps(listed, indent=2))
    else:
        for cycle in found:
            _print_cycle(cycle, graph, files)
        print(
            f"{len(files)} modules and C files, {len(found)} circles of "
            f"{sum(len(c.modules) for c in found)}; {len(new)} are not accepted"
        )
    for accepted in unused:
        print(
            f"No circle matches {' '.join(accepted.patterns)} any more: remove it from ACCEPTED.",
            file=sys.stderr,
        )
    return 1 if new else 0


def _accepted_by(cycle: Cycle) -> Accepted | None:
    for accepted in ACCEPTED:
        if all(
            any(fnmatchcase(module, pattern) for pattern in accepted.patterns)
            for module in cycle.modules
        ):
            return accepted
    return None


def _print_cycle(cycle: Cycle, graph: Graph, files: Mapping[str, Path]) -> None:
    accepted = _accepted_by(cycle)
    print(f"{len(cycle.modules)} files" + (f" (accepted: {accepted.reason})" if accepted else ""))
    print(f"  {' '.join(cycle.modules)}")
    for module, target in zip(cycle.path, (*cycle.path[1:], cycle.path[0]), strict=True):
        place = files[module].relative_to(ROOT)
        print(f"  {place}:{graph[module][target]} uses {target}")


def _print_sizes(as_json: bool) -> int:
    rows = sizes()
    if as_json:
        print(json.dumps(rows, indent=2))
        return 0
    print(f"{'package':34}{'files':>7}{'lines':>8}{'functions':>11}{'C lines':>9}")
    for row in rows:
        print(
            f"{row['package']:34}{row['files']:7}{row['lines']:8}{row['functions']:11}"
            f"{row['c_lines']:9}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
