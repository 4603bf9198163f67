"""Draw how a package is cut: its rooms, the arrows between them, and the floors they stand on.

A room is a module or a subpackage directly inside the package. An arrow leads from a room to each
room that it imports; imports under ``if TYPE_CHECKING`` and inside functions count. A room stands
one floor above the highest room that it imports, so the number of floors is the length of the
longest chain. Rooms that import each other have no floors: that is an error.

    python -m scripts.house mockbroker mockbroker.simulation
    python -m scripts.house mockbroker --json

Files without Python in them are not counted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from scripts.import_cycles import imports, modules

__all__ = ["Plan", "main", "plan_of"]

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Plan:
    """``floors`` has the rooms by floor, the lowest first; ``arrows`` the rooms that each imports;
    ``lines`` the lines of Python in each."""

    package: str
    floors: tuple[tuple[str, ...], ...]
    arrows: Mapping[str, frozenset[str]]
    lines: Mapping[str, int]

    @property
    def rooms(self) -> int:
        return len(self.lines)

    def summary(self) -> str:
        arrows = sum(map(len, self.arrows.values()))
        total = sum(self.lines.values())
        return (
            f"{self.package}: {self.rooms} rooms, {arrows} arrows, {len(self.floors)} floors, "
            f"{total:,} lines"
        )


def plan_of(package: str) -> Plan:
    """The plan of ``package``, such as ``mockbroker.simulation``. Raises ``graphlib.CycleError`` if
    rooms import each other."""
    paths = modules(packages=(package.partition(".")[0],))
    graph = imports(paths)
    lines: dict[str, int] = {}
    arrows: dict[str, set[str]] = {}
    for module, path in paths.items():
        room = _room(module, package)
        if room is None:
            continue
        text = path.read_text(encoding="utf-8")
        lines[room] = lines.get(room, 0) + text.count("\n")
        found = {_room(target, package) for target in graph[module]}
        arrows.setdefault(room, set()).update(each for each in found if each not in (None, room))
    return Plan(
        package, _floors(arrows), {room: frozenset(found) for room, found in arrows.items()}, lines
    )


def _room(module: str, package: str) -> str | None:
    """The room of a module; the package's own ``__init__`` is one. None outside the package."""
    if module == package:
        return "__init__"
    if not module.startswith(f"{package}."):
        return None
    return module.removeprefix(f"{package}.").partition(".")[0]


def _floors(arrows: Mapping[str, set[str]]) -> tuple[tuple[str, ...], ...]:
    height: dict[str, int] = {}
    for room in TopologicalSorter(arrows).static_order():
        height[room] = 1 + max((height[each] for each in arrows[room]), default=0)
    top = max(height.values(), default=0)
    return tuple(
        tuple(sorted(room for room in height if height[room] == floor))
        for floor in range(1, top + 1)
    )


def _draw(plan: Plan) -> list[str]:
    text = [plan.summary()]
    for number in range(len(plan.floors), 0, -1):
        for room in plan.floors[number - 1]:
            below = ", ".join(sorted(plan.arrows[room])) or "nothing"
            text.append(f"  {number:>2}  {room} ({plan.lines[room]:,}) -> {below}")
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.house", description=__doc__)
    parser.add_argument("packages", nargs="+", metavar="PACKAGE")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    try:
        plans = [plan_of(each) for each in given.packages]
    except CycleError as error:
        sys.stderr.write(f"rooms import each other: {' -> '.join(error.args[1])}\n")
        return 1
    if given.json:
        counts = [
            {
                "package": plan.package,
                "rooms": plan.rooms,
                "arrows": sum(map(len, plan.arrows.values())),
                "floors": [list(each) for each in plan.floors],
                "lines": dict(plan.lines),
            }
            for plan in plans
        ]
        sys.stdout.write(json.dumps(counts, indent=2) + "\n")
    else:
        sys.stdout.write("\n".join("\n".join(_draw(plan)) for plan in plans) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
