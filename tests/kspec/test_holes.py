"""Defects that are made from the reference client's source, and those that no case catches."""

from __future__ import annotations

import ast
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kspec.holes.fingerprint import fingerprint
from kspec.holes.mutant_client import every_mutation, mutant_client, source_of
from kspec.holes.mutations import (
    Mutation,
    compare_values,
    lines_by_name,
    mutate,
    mutations,
)
from kspec.holes.reasons import REASONS, reason_for
from kspec.holes.right_client import RightPlays, baseline, differing
from kspec.holes.search import sample, search
from kspec.holes.stored_plays import PlaysInFiles
from kspec.holes.workers import Workers
from kspec.model import Case, CaseFile, Variant
from kspec.reference_client.client import Client
from kspec.runner.files import choose, load_cases

SOURCE = textwrap.dedent(
    '''\
    """A module."""
    _MOVED: Final = (15, 16)
    _ALL: Final = (*_MOVED, 14)

    class Rules:
        longest: int = 7

        def passes(self, code: int, tp: str) -> bool:
            """Whether 1 is more than 0."""
            if code in _ALL and self.known.get(tp, -1) >= 0:
                self.known[tp] = code
                raise ValueError(f"code {code + 1}")
            return min(code, self.longest) == 3 or not any(self.rows)

        def body(self, row: Any) -> Any:
            self.forget(row.epoch)
            return message("FetchRequest")(max_bytes=row.size, min_bytes=1)
    '''
)


def changes(kind: str) -> list[str]:
    return [each.change for each in mutations(SOURCE, "m") if each.kind == kind]


def test_each_kind_of_defect_is_made_once() -> None:
    assert changes("comparison") == [
        "code in _ALL -> code not in _ALL",
        "self.known.get(tp, -1) >= 0 -> self.known.get(tp, -1) > 0",
        "self.known.get(tp, -1) >= 0 -> self.known.get(tp, -1) < 0",
        "min(code, self.longest) == 3 -> min(code, self.longest) != 3",
    ]
    assert changes("error left out") == [
        "(15, 16) -> (16,)", "(15, 16) -> (15,)", "(*_MOVED, 14) -> (14,)",
        "(*_MOVED, 14) -> (*_MOVED,)",
    ]  # fmt: skip
    assert changes("dropped statement") == [
        "self.known[tp] = code",
        "raise ValueError(f'code {code + 1}')",
        "self.forget(row.epoch)",
    ]
    assert changes("field left out") == ["max_bytes=row.size", "min_bytes=1"]
    assert changes("field") == ["row.epoch -> .size", "row.size -> .epoch"]
    assert changes("state per partition") == ["self.known.get(tp, -1) -> (tp[0], 0)"]
    assert set(changes("function")) == {
        "min(code, self.longest) -> max(...)", "any(self.rows) -> all(...)"
    }  # fmt: skip
    assert "7 -> 8" in changes("constant")
    assert not any("code + 1 ->" in each.change for each in mutations(SOURCE, "m"))


def test_a_defect_changes_one_place() -> None:
    right = ast.dump(ast.parse(SOURCE))
    trees = [ast.dump(mutate(SOURCE, each)) for each in mutations(SOURCE, "m")]
    assert right not in trees
    assert len(set(trees)) == len(trees)


def test_a_constant_is_shown_by_the_lines_that_use_it() -> None:
    found = {each.change: each for each in mutations(SOURCE, "m")}
    condition = found["code in _ALL -> code not in _ALL"].lines
    assert found["(15, 16) -> (16,)"].lines == condition
    assert found["7 -> 8"].names == {"longest"}
    assert found["7 -> 8"].lines == set(lines_by_name(SOURCE)["longest"])


@pytest.mark.slow
def test_defects_of_the_reference_client_are_other_programs(rng: random.Random) -> None:
    every = every_mutation()
    assert len(every) > 2_000
    assert len({each.id for each in every}) == len(every)
    for each in rng.sample(every, 15):
        source = source_of(each.module)
        assert ast.dump(mutate(source, each)) != ast.dump(ast.parse(source)), each


def test_a_larger_sample_has_the_smaller_one() -> None:
    every = every_mutation()
    assert sample(every, 1, 20) == sample(every, 1, 50)[:20]
    assert sample(every, 1, 20) != sample(every, 2, 20)


def chosen(module: str, change: str) -> Mutation:
    return next(each for each in every_mutation() if (each.module, each.change) == (module, change))


def test_a_client_with_a_defect_is_beside_the_right_one() -> None:
    wrong = mutant_client(chosen("consumer", "offset >= position -> offset > position"))
    assert wrong is not Client
    assert not wrong.consumer.is_wanted(None, 3, 3)
    assert Client.consumer.is_wanted(None, 3, 3)  # type: ignore[arg-type]


def test_what_changes_from_play_to_play_tells_nothing() -> None:
    first = {"a": frozenset("1"), "b": frozenset("2")}
    second = {"a": frozenset("1"), "b": frozenset("3")}
    right = fingerprint([(first, {"Fetch": 4}), (second, {"Fetch": 6})])
    assert right.differences({"a": frozenset("1"), "b": frozenset("9")}, {"Fetch": 5}) == []
    assert right.differences({"a": frozenset("2"), "b": frozenset("2")}, {"Fetch": 5}) == ["a"]
    assert right.differences({"c": frozenset("1")}, {"Fetch": 5}) == ["a", "c"]
    assert right.differences(first, {"Fetch": 90}) == ["number of Fetch"]


def test_stored_plays_are_of_what_a_case_does(tmp_path: Path) -> None:
    (case,) = choose(load_cases(), ["fetch/001"])
    (variant,) = case.variants
    plays = RightPlays(frozenset({("link", 3)}), fingerprint([({"a": frozenset("1")}, {})]), 0.5)
    stored = PlaysInFiles(tmp_path / "holes")
    stored.store(case, plays)
    stricter = msgspec.structs.replace(variant.case, must=[])
    assert stored.find(with_case(case, stricter)) == plays
    other = msgspec.structs.replace(variant.case, steps=[])
    assert stored.find(with_case(case, other)) is None
    for path in (tmp_path / "holes").iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert stored.find(case) is None


def with_case(case: CaseFile, changed: Case) -> CaseFile:
    return msgspec.structs.replace(case, variants=[Variant("", changed)])


@pytest.mark.slow
def test_the_right_client_runs_what_its_cases_are_about(tmp_path: Path) -> None:
    cases = choose(load_cases(), ["fetch/001", "produce/007"])
    told: list[tuple[int, int]] = []
    stored = PlaysInFiles(tmp_path / "holes")
    right = baseline(cases, jobs=2, on_progress=lambda *each: told.append(each), stored=stored)
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    again = baseline(cases, jobs=2, on_progress=lambda *each: told.append(each), stored=stored)
    assert len(told) == 4
    assert again.plays == right.plays
    wanted = chosen("consumer", "offset >= position -> offset > position")
    assert right.running(wanted, {}) == ["fetch/001-a-batch-from-its-middle"]
    assert right.subject(right.running(wanted, {})) == "fetch"


def holes(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "kspec", "holes", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


@pytest.mark.slow
def test_a_defect_without_another_value_is_the_same() -> None:
    cases = choose(load_cases(), ["fetch/001"])
    right = baseline(cases, jobs=1, on_progress=lambda *_: None)
    wanted = [
        chosen("consumer", "offset >= position -> offset > position"),
        chosen("consumer", "each.replica >= 0 -> each.replica > 0"),
    ]
    found = differing(wanted, right, {}, jobs=1)
    assert [found[each.id] for each in wanted] == [{"fetch/001-a-batch-from-its-middle"}, set()]
    (same,) = search(wanted[1:], right, {}, differing=found, jobs=1)
    assert (same.status, same.played) == ("same", 0)


@pytest.mark.slow
def test_a_sample_is_played_and_counted() -> None:
    command = ["--case", "fetch/001", "--case", "fetch/004", "--subject", "fetch", "--jobs", "2"]
    process = holes(*command, "--seed", "1", "--sample", "40", "--json")
    out, err = process.communicate(timeout=900)
    assert process.returncode == 0, err
    found = json.loads(out)
    whole = found["subjects"][-1]
    parts = (whole[each] for each in ("not_reached", "same", "harmless", "caught", "holes"))
    assert sum(parts) == whole["defects"] == len(found["defects"])
    assert whole["caught"] > 0
    assert all(each["by"].startswith("fetch/") for each in found["defects"]
               if each["status"] == "caught")  # fmt: skip


def compute_or_tell(endless: bool, tell: Callable[..., None]) -> None:
    while endless:
        pass
    tell("played")


def test_a_process_that_only_computes_hangs() -> None:
    workers = Workers(2, busy_seconds=1)
    workers.start(compute_or_tell, True, key="endless")
    workers.start(compute_or_tell, False, key="short")
    found = list(workers.messages())
    assert [message for key, message in found if key == "endless"] == [("hung",)]
    assert [message for key, message in found if key == "short"] == [("played",), ("done",)]


@pytest.mark.slow
def test_an_interrupted_search_keeps_what_it_has() -> None:
    process = holes("--case", "fetch/001", "--jobs", "1", "--sample", "300", "--json")
    assert process.stderr is not None
    for line in process.stderr:
        if " defects: " in line:
            break
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 128 + signal.SIGTERM
    assert "interrupted after" in err
    found = json.loads(out)
    assert found["interrupted"] is True
    assert found["defects"]


def test_each_reason_is_about_a_defect() -> None:
    every = every_mutation()
    known = {(each.module, each.place, each.change) for each in every}
    known |= {(each.module, each.place, "*") for each in every}
    assert not set(REASONS) - known
    first = next(each for each in every if each.place == "_FIRST_PAUSE")
    assert reason_for(first) == REASONS["rules", "_FIRST_PAUSE", "*"]
    assert reason_for(chosen("consumer", "offset >= position -> offset > position")) is None


def compare(*changes: str) -> dict[str, list[tuple[object, list[object]]]]:
    """Run a function whose expressions are compared; return by change what was compared."""
    source = textwrap.dedent(
        """\
        def run(known, code):
            if code in (15, 16) and known.get(code, -1) >= 0:
                return sorted([*known, code])
            return known.pop(code + 1)
        """
    )
    wanted = [each for each in mutations(source, "m") if each.change in changes]
    found: dict[str, list[tuple[object, list[object]]]] = {each: [] for each in changes}

    def compared(indexes: tuple[int, ...], right: Callable[[], object], others: object) -> object:
        assert isinstance(others, tuple)
        for index, other in zip(indexes, others, strict=True):
            found[wanted[index].change].append((right(), [other()]))
        return right()

    names: dict[str, Any] = {"compared": compared}
    exec(compile(compare_values(source, wanted, "compared"), "m", "exec"), names)
    assert names["run"]({15: 7}, 15) == [15, 15]
    assert names["run"]({8: 3}, 7) == 3
    return found


def test_values_are_compared_where_they_may_be_computed_twice() -> None:
    at_all, sign, place = "(15, 16) -> (16,)", "15 -> 16", "code + 1 -> code - 1"
    found = compare(at_all, sign, place)
    # Of a condition only the truth counts, and the whole of it.
    assert found[at_all] == [(True, [False]), (False, [False])]
    assert found[sign] == [(True, [False]), (False, [False])]
    # A call that may have effects is not repeated, its argument is.
    assert found[place] == [(8, [6])]
