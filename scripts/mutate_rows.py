"""Mutation testing of rules: change each row of each table once; a test of the row must fail.

A row is a ``mockbroker.simulation.releases.rows.Row``. The tests held to it are those marked with
its requirement. A mutant is a row that never matches, or that lacks one of its effects. Rows are
found in whatever module of ``mockbroker`` holds them, so a new table needs no registration. Tests
are collected once. A mutant's tests run in a fork, those of the fewest requirements first, and stop
at the first failure. The test that fails then runs without the mutant, where it must pass.

    python -m scripts.mutate_rows                                # every mutant
    python -m scripts.mutate_rows --module simulation.reassignment.kraft  # the tables of a package
    python -m scripts.mutate_rows --row K455-33                  # of rows with this requirement
    python -m scripts.mutate_rows --within 120                   # a random choice, for two minutes

Exits with 1 and names the mutant if one survives; with 2 if a test also fails without the
mutant.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import pytest
from hypothesis import Phase, settings
from msgspec.structs import force_setattr

import mockbroker
from mockbroker.simulation.releases.rows import Row

__all__ = ["Mutant", "Place", "all_rows", "main", "mutants_of"]

ROOT = Path(__file__).resolve().parent.parent
QUICK = "not slow and not oracle and not java and not node and not go"
PATIENCE = 10.0
"""Seconds of processor time that a test may take: those that run take less than one, and with some
mutants they do not end, which is a failure, too."""
STANDSTILL = 120
"""Seconds on the wall after which one that waits for ever is ended."""
PASSED = "passed"
FAILED = "failed"
_ID = re.compile(r"\b[A-Z][A-Z0-9-]*-\d+\b")

# ---- rows and what can be done to them -----------------------------------------------------------


AnyRow: TypeAlias = Row[Any, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """A row, and the module of ``mockbroker`` that holds it."""

    row: AnyRow
    module: str

    def __str__(self) -> str:
        return f"{self.module}: {self.row.requirement} {_name(self.row.when)}"


@dataclass(frozen=True, slots=True)
class Mutant:
    place: Place
    change: str
    when: Callable[[Any], bool]
    then: tuple[Any, ...]

    def apply(self) -> None:
        """Irreversible: only for a process that is about to end."""
        force_setattr(self.place.row, "when", self.when)
        force_setattr(self.place.row, "then", self.then)

    def __str__(self) -> str:
        return f"{self.place}, {self.change}"


def all_rows(package: ModuleType = mockbroker) -> list[Place]:
    """Every row that a module below the package holds, however deep, once each.

    Of several modules that hold a row, the one called ``tables`` names it, else the first.
    """
    prefix = f"{package.__name__}."
    names = [each.name for each in pkgutil.walk_packages(package.__path__, prefix)]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    modules.sort(key=lambda module: not module.__name__.endswith(".tables"))
    places: dict[int, Place] = {}
    for module in modules:
        for row in _rows_in(list(vars(module).values()), prefix, set()):
            places.setdefault(id(row), Place(row, module.__name__.removeprefix(prefix)))
    return sorted(places.values(), key=lambda place: place.module)


def _rows_in(thing: object, prefix: str, seen: set[int]) -> Iterator[AnyRow]:
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, Row):
        yield thing
        return
    for part in _parts(thing, prefix):
        yield from _rows_in(part, prefix, seen)


def _parts(thing: object, prefix: str) -> Iterator[object]:
    """The items of a collection; the attributes of an object of the package, and of its class."""
    if isinstance(thing, Mapping):
        yield from thing.values()
    elif isinstance(thing, (tuple, list)):
        yield from thing
    elif type(thing).__module__.startswith(prefix):
        yield from getattr(thing, "__dict__", {}).values()
        for cls in type(thing).__mro__:
            for name in getattr(cls, "__slots__", ()):
                yield getattr(thing, name, None)
            if cls.__module__.startswith(prefix):
                yield from vars(cls).values()


def mutants_of(place: Place, *, conditions: bool = False) -> Iterator[Mutant]:
    """``conditions`` adds a row that always matches, which may be equivalent for the last row."""
    row = place.row
    yield Mutant(place, "never matching", lambda _: False, row.then)
    if conditions and _name(row.when) != "always":
        yield Mutant(place, "always matching", lambda _: True, row.then)
    for index, effect in enumerate(row.then):
        without = row.then[:index] + row.then[index + 1 :]
        change = f"without effect {index + 1}, {_name(effect)}"
        yield Mutant(place, change, row.when, without)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__).lstrip("_")


# ---- tests, in forks -----------------------------------------------------------------------------


class Trial:
    """A plugin of pytest that, instead of running the tests, tries the mutants on them."""

    def __init__(self, mutants: Sequence[Mutant], within: float | None) -> None:
        self.mutants = mutants
        self.within = within
        self.survivors: list[Mutant] = []
        self.broken: list[str] = []
        self.left_out = 0
        self._sound: set[str] = set()
        """Tests that pass without a mutant."""

    def pytest_configure(self) -> None:
        # Forks that fail would leave examples behind, which every later run would try first; and
        # that there is one is enough, however large it is.
        settings.register_profile(
            "mutants", settings.default, database=None, phases=(Phase.explicit, Phase.generate)
        )
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("the tests cannot be collected")
        self._try_all(_by_requirement(session.items))
        return True

    def _try_all(self, tests: Mapping[str, Sequence[pytest.Item]]) -> None:
        began = time.monotonic()
        for number, mutant in enumerate(self.mutants):
            if self.within is not None and time.monotonic() - began > self.within:
                self.left_out = len(self.mutants) - number
                return
            items = {item.nodeid: item for each in ids_of(mutant) for item in tests.get(each, ())}
            self._try_one(mutant, sorted(items.values(), key=lambda item: len(_requirements(item))))
            if self.broken:
                return

    def _try_one(self, mutant: Mutant, items: Sequence[pytest.Item]) -> None:
        failure = _first_failure(items, mutant)
        if failure is None:
            self.survivors.append(mutant)
            verdict = f"SURVIVES {len(items)} tests"
        elif self._passes_unchanged(failure.item):
            verdict = f"killed by {failure.how}{failure.item.nodeid}"
        else:
            self.broken.append(failure.item.nodeid)
            return
        print(f"{mutant}: {verdict}", flush=True)

    def _passes_unchanged(self, item: pytest.Item) -> bool:
        if item.nodeid not in self._sound and _first_failure([item]) is None:
            self._sound.add(item.nodeid)
        return item.nodeid in self._sound


@dataclass(frozen=True, slots=True)
class Failure:
    item: pytest.Item
    how: str = ""


def ids_of(mutant: Mutant) -> list[str]:
    return _ID.findall(mutant.place.row.requirement)


def _by_requirement(items: Sequence[pytest.Item]) -> dict[str, list[pytest.Item]]:
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        for each in _requirements(item):
            tests.setdefault(each, []).append(item)
    return tests


def _requirements(item: pytest.Item) -> set[str]:
    return {name for mark in item.iter_markers("requirement") for name in mark.args}


def _first_failure(items: Sequence[pytest.Item], mutant: Mutant | None = None) -> Failure | None:
    """The first test that fails with the mutant. The tests run in a process of their own."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _be_the_child(items, mutant, write)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        *begun, said = pipe.read().decode().split("\n")
    _, status = os.waitpid(child, 0)
    ended = os.waitstatus_to_exitcode(status)
    if -ended in (signal.SIGPROF, signal.SIGALRM) and begun:
        return Failure(items[len(begun) - 1], f"having no end ({signal.Signals(-ended).name}): ")
    if said not in (PASSED, FAILED):
        raise RuntimeError(f"a trial ended with {ended}, which is no verdict: {said}")
    return Failure(items[len(begun) - 1]) if said == FAILED else None


def _be_the_child(items: Sequence[pytest.Item], mutant: Mutant | None, write: int) -> None:
    """Write a line as each test begins, and then the verdict, without a line's end. An error of
    this script, or of pytest, must not pass for a test that failed."""
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(silence, descriptor)
    try:
        if mutant is not None:
            mutant.apply()
        said = FAILED if _one_fails(items, write) else PASSED
    except BaseException as error:
        said = repr(error).replace("\n", " ")
    finally:
        os.write(write, said.encode())
        os._exit(0)


def _one_fails(items: Sequence[pytest.Item], write: int) -> bool:
    from _pytest.runner import runtestprotocol

    followers: list[pytest.Item | None] = [*items[1:], None]
    for item, following in zip(items, followers, strict=False):
        os.write(write, b"\n")
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        signal.alarm(STANDSTILL)
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            return True
    return False


# ---- command line --------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Change each row of each table once; a test of the row must fail."
    )
    parser.add_argument(
        "--module", action="append", help="only rows of this module, or of those below it"
    )
    parser.add_argument("--row", action="append", help="only rows with this requirement")
    parser.add_argument(
        "--conditions", action="store_true", help="also replace conditions by one that always holds"
    )
    parser.add_argument("--within", type=float, help="seconds after which no further mutant starts")
    parser.add_argument("--seed", type=int, help="seed of the order of mutants with --within")
    parser.add_argument("--list", action="store_true", help="print the mutants and run none")
    parser.add_argument("tests", nargs="*", default=["tests"], help="where to collect tests")
    options = parser.parse_args(arguments)

    mutants = [
        mutant
        for place in all_rows()
        if not options.module
        or any(f"{place.module}.".startswith(f"{each}.") for each in options.module)
        for mutant in mutants_of(place, conditions=options.conditions)
        if not options.row or set(options.row) & set(ids_of(mutant))
    ]
    if not mutants:
        parser.error("no row matches")
    if options.list:
        print(*mutants, sep="\n")
        return 0
    if options.within is not None:
        seed = random.randrange(2**32) if options.seed is None else options.seed
        random.Random(seed).shuffle(mutants)
        print(f"--seed {seed}")
    return _judge(Trial(mutants, options.within), options.tests)


def _judge(trial: Trial, paths: Sequence[str]) -> int:
    os.chdir(ROOT)
    os.environ["KPROTO_HYPOTHESIS"] = "fast"
    quietly = ["-q", "-s", "--no-header", "--disable-warnings", "-p", "no:cacheprovider"]
    # Plugins are imported already, by the search for rows; tests rely on no rewritten assert there.
    quietly += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = pytest.main(["-c", "pyproject.toml", *quietly, "-m", QUICK, *paths], plugins=[trial])
    if code != pytest.ExitCode.OK or trial.broken:
        reason = ", ".join(trial.broken) or f"pytest ended with {code!r}"
        print(f"The tests fail as they are: {reason}", file=sys.stderr)
        return 2
    tried = len(trial.mutants) - trial.left_out
    print(f"{tried - len(trial.survivors)} of {tried} mutants killed, {trial.left_out} not tried.")
    for survivor in trial.survivors:
        print(f"SURVIVES: {survivor}", file=sys.stderr)
    return 1 if trial.survivors else 0


if __name__ == "__main__":
    sys.exit(main())
