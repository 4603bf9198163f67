"""Mutation testing of rules: change each row and each fact once; a test of it must fail.

A row is a ``mockbroker.simulation.releases.rows.Row``; facts are a ``Fact`` or a ``Varying`` of
``mockbroker.simulation.releases.release``. The tests held to a rule are those marked with its
requirement. A mutant is a row that never matches or lacks one of its effects; a fact that no
release has, or that more releases have; or a varying value that does not change where it should.
Rules are found in whatever module of ``mockbroker`` holds them, so a new one needs no registration.
Tests are collected once. A mutant's tests run in a fork, those of the fewest requirements first,
and stop at the first failure. The test that fails then runs without the mutant, where it must pass.

    python -m scripts.mutate_rows                                # every mutant
    python -m scripts.mutate_rows --module simulation.reassignment.kraft  # the tables of a package
    python -m scripts.mutate_rows --module simulation.releases   # facts
    python -m scripts.mutate_rows --row K455-33                  # of rows with this requirement
    python -m scripts.mutate_rows --within 120                   # a sample, for two minutes
    KPROTO_SEED=random python -m scripts.mutate_rows --within 120  # another one

A sample is drawn by ``KPROTO_SEED``, whose default is fixed: only a change can make CI fail.
Exits with 1 and names the mutant if one survives; with 2 if a test also fails without the
mutant.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import pkgutil
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import Phase, settings
from msgspec.structs import force_setattr

import mockbroker
from mockbroker.simulation.releases.release import EVER, Fact, Fix, ReleaseNumber, Varying
from mockbroker.simulation.releases.rows import Row
from tests.support import seeds

__all__ = ["Mutant", "Place", "all_rules", "main", "mutants_of"]

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

# ---- rows and facts, and what can be done to them ------------------------------------------------


AnyRow: TypeAlias = Row[Any, Any]
Rule: TypeAlias = AnyRow | Fact | Fix | Varying[Any]
_NO_RELEASE: Final = (1_000,)
"""No release reaches this number."""


@dataclass(frozen=True, slots=True)
class Place:
    """A rule, the module of ``mockbroker`` that holds it, and its name there."""

    rule: Rule
    module: str
    name: str = ""

    def __str__(self) -> str:
        name = _name(self.rule.when) if isinstance(self.rule, Row) else self.name
        return f"{self.module}: {self.rule.requirement} {name}"


@dataclass(frozen=True, slots=True)
class Mutant:
    """``fields`` are the fields of the rule that differ, by name."""

    place: Place
    change: str
    fields: Mapping[str, Any]

    def apply(self) -> None:
        """Irreversible: only for a process that is about to end."""
        for name, value in self.fields.items():
            force_setattr(self.place.rule, name, value)

    def __str__(self) -> str:
        return f"{self.place}, {self.change}"


def all_rules(package: ModuleType = mockbroker) -> list[Place]:
    """Every row and fact that a module below the package holds, however deep, once each.

    Of several modules that hold a row, one of rules names it, else the first.
    """
    prefix = f"{package.__name__}."
    names = [each.name for each in pkgutil.walk_packages(package.__path__, prefix)]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    modules.sort(
        key=lambda module: (
            not module.__name__.endswith(("_rules", "releases.facts", "releases.fixes"))
        )
    )
    places: dict[int, Place] = {}
    for module in modules:
        for name, rule in _rules_in(dict(vars(module)), prefix, set()):
            place = Place(rule, module.__name__.removeprefix(prefix), name)
            places.setdefault(id(rule), place)
    return sorted(places.values(), key=lambda place: place.module)


def _rules_in(
    thing: object, prefix: str, seen: set[int], name: str = ""
) -> Iterator[tuple[str, Rule]]:
    """``name`` is the variable or the key that holds the thing."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, (Row, Fact, Fix, Varying)):
        yield name, thing
    else:
        for called, part in _parts(thing, prefix):
            yield from _rules_in(part, prefix, seen, called or name)


def _parts(thing: object, prefix: str) -> Iterator[tuple[str, object]]:
    """The items of a collection; the attributes of an object of the package, and of its class."""
    if isinstance(thing, Mapping):
        for key, value in thing.items():
            yield str(key), value
    elif isinstance(thing, (tuple, list)):
        for value in thing:
            yield "", value
    elif type(thing).__module__.startswith(prefix):
        yield from getattr(thing, "__dict__", {}).items()
        for cls in type(thing).__mro__:
            for name in getattr(cls, "__slots__", ()):
                yield name, getattr(thing, name, None)
            if cls.__module__.startswith(prefix):
                yield from vars(cls).items()


def mutants_of(
    place: Place, *, conditions: bool = False, releases: bool = False
) -> Iterator[Mutant]:
    """``conditions`` adds a row that always matches, which may be equivalent for the last row;
    ``releases`` adds rows that have lost their ``since`` or their ``until``."""
    rule = place.rule
    if isinstance(rule, Fact):
        yield Mutant(place, "in no release", {"since": _NO_RELEASE})
        yield from _releases_mutated(place, rule)
    elif isinstance(rule, Fix):
        yield Mutant(place, "in no release", {"since": _NO_RELEASE, "backports": ()})
        yield Mutant(place, "in earlier releases, too", {"since": EVER})
        for first in rule.backports:
            rest = tuple(each for each in rule.backports if each != first)
            yield Mutant(place, f"without the backport {_dotted(first)}", {"backports": rest})
    elif isinstance(rule, Varying):
        yield from _values_mutated(place, rule)
    else:
        yield Mutant(place, "never matching", {"when": lambda _: False})
        if conditions and _name(rule.when) != "always":
            yield Mutant(place, "always matching", {"when": lambda _: True})
        for index, effect in enumerate(rule.then):
            without = rule.then[:index] + rule.then[index + 1 :]
            change = f"without effect {index + 1}, {_name(effect)}"
            yield Mutant(place, change, {"then": without})
        if releases:
            yield from _releases_mutated(place, rule)


def _releases_mutated(place: Place, rule: AnyRow | Fact) -> Iterator[Mutant]:
    if rule.since != EVER:
        yield Mutant(place, "in earlier releases, too", {"since": EVER})
    if rule.until is not None:
        yield Mutant(place, "in later releases, too", {"until": None})


def _values_mutated(place: Place, rule: Varying[Any]) -> Iterator[Mutant]:
    (ever, _), (_, second), *others = rule.values
    yield Mutant(place, "without its first value", {"values": ((ever, second), *others)})
    for since, value in rule.values[1:]:
        rest = tuple(each for each in rule.values if each[0] != since)
        yield Mutant(place, f"without {value} since {_dotted(since)}", {"values": rest})


def _dotted(number: ReleaseNumber) -> str:
    return ".".join(map(str, number))


def _name(function: Callable[..., Any]) -> str:
    """The function's name; that of an effect with arguments has them: ``refuse(NOT_LEADER)``."""
    made = getattr(function, "__dict__", {})
    if "act" in made:
        texts = [_text(each) for each in made["args"]]
        texts += [f"{name}={_text(value)}" for name, value in made["kwargs"].items()]
        return f"{_name(made['act'])}({', '.join(texts)})"
    return getattr(function, "__name__", repr(function)).lstrip("_")


def _text(argument: object) -> str:
    name = argument.name if isinstance(argument, Enum) else getattr(argument, "__name__", argument)
    return str(name)


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
    return _ID.findall(mutant.place.rule.requirement)


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
            _clear_caches()
        said = FAILED if _one_fails(items, write) else PASSED
    except BaseException as error:
        said = repr(error).replace("\n", " ")
    finally:
        os.write(write, said.encode())
        os._exit(0)


def _clear_caches() -> None:
    """Forget which rows apply in a release: collecting the tests made clusters of some."""
    for name, module in list(sys.modules.items()):
        if name.startswith("mockbroker."):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


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
        description="Change each row and each fact once; a test of it must fail."
    )
    parser.add_argument(
        "--module", action="append", help="only rules of this module, or of those below it"
    )
    parser.add_argument("--row", action="append", help="only rules with this requirement")
    parser.add_argument(
        "--conditions", action="store_true", help="also replace conditions by one that always holds"
    )
    parser.add_argument(
        "--releases", action="store_true", help="also give rows to releases that lack them"
    )
    parser.add_argument("--within", type=float, help="seconds after which no further mutant starts")
    parser.add_argument(
        "--seed",
        type=int,
        default=seeds.seed(),
        help="seed of the order of mutants with --within (default: KPROTO_SEED)",
    )
    parser.add_argument("--list", action="store_true", help="print the mutants and run none")
    parser.add_argument("tests", nargs="*", default=["tests"], help="where to collect tests")
    options = parser.parse_args(arguments)

    mutants = [
        mutant
        for place in all_rules()
        if not options.module
        or any(f"{place.module}.".startswith(f"{each}.") for each in options.module)
        for mutant in mutants_of(place, conditions=options.conditions, releases=options.releases)
        if not options.row or set(options.row) & set(ids_of(mutant))
    ]
    if not mutants:
        parser.error("no rule matches")
    if options.list:
        print(*mutants, sep="\n")
        return 0
    if options.within is not None:
        print(f"--seed {options.seed}")
        mutants.sort(key=lambda mutant: _place_in_order(options.seed, mutant))
    return _judge(Trial(mutants, options.within), options.tests)


def _place_in_order(seed: int, mutant: Mutant) -> bytes:
    """A sort key of the mutant's name alone, so that a new rule does not reorder the others."""
    return hashlib.sha256(f"{seed}:{mutant}".encode()).digest()


def _judge(trial: Trial, paths: Sequence[str]) -> int:
    os.chdir(ROOT)
    os.environ["KPROTO_HYPOTHESIS"] = "fast"
    quietly = ["-q", "-s", "--no-header", "--disable-warnings", "-p", "no:cacheprovider"]
    # Plugins are imported already, by the search for rows; tests rely on no rewritten assert there.
    quietly += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    quietly += ["-o", "timeout=0"]  # its alarm would replace that of ``_one_fails``
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
