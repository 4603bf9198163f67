"""Mutants of rules: every rule has them, and a test that misses a change lets its mutant survive.

``.ci/run`` tries every row; these tests use a table of one row and a test suite of its own.
"""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Fact, Fix, Varying
from mockbroker.simulation.releases.rows import Row
from scripts import mutate_rows
from tests.support import requirements

ROOT = Path(__file__).parent.parent.parent

TABLE = """
    import sys
    from mockbroker.simulation.releases.rows import Row, with_arguments
    from scripts import mutate_rows

    @with_arguments
    def add(work, number): work.append(number)

    class Holder:
        rows = {"on_it": (Row("X-01, C-01", lambda work: True, (add(1), add(2))),)}

    Holder.__module__ = "mockbroker.simulation.reassignment.mine"
    place, = [
        mutate_rows.Place(row, "mine")
        for _, row in mutate_rows._rules_in(Holder(), "mockbroker.", set())
    ]
    mutate_rows.all_rules = lambda: [place]
    sys.modules["mine"] = sys.modules["__main__"]
    sys.exit(mutate_rows.main(["--module", "mine", *sys.argv[1:]]))
"""
SUITE = """
    import pytest
    from mine import Holder

    @pytest.mark.requirement("C-01")
    def test_it():
        done = []
        for row in Holder.rows["on_it"]:
            if row.when(done):
                for effect in row.then:
                    effect(done)
        assert %s
"""


def tried(tmp_path: Path, expected: str, *options: str) -> subprocess.CompletedProcess[str]:
    suite = tmp_path / "test_mine.py"
    suite.write_text(textwrap.dedent(SUITE) % expected)
    command = [sys.executable, "-c", textwrap.dedent(TABLE), *options, str(suite)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_test_that_misses_nothing_kills_every_mutant(tmp_path: Path):
    run = tried(tmp_path, "done == [1, 2]")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.count("killed by ") == 3
    assert "3 of 3 mutants killed, 0 not tried." in run.stdout


@pytest.mark.slow
def test_a_test_that_misses_an_effect_lets_it_survive(tmp_path: Path):
    run = tried(tmp_path, "1 in done")
    assert run.returncode == 1
    assert run.stderr.splitlines() == [
        "SURVIVES: mine: X-01, C-01 <lambda>, without effect 2, add(2)"
    ]


@pytest.mark.slow
def test_a_row_without_a_test_survives(tmp_path: Path):
    run = tried(tmp_path, "True", "--row", "C-01")
    assert "SURVIVES 1 tests" in run.stdout
    suite = tmp_path / "test_mine.py"
    suite.write_text("def test_it(): pass")
    command = [sys.executable, "-c", textwrap.dedent(TABLE), str(suite)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.count("SURVIVES 0 tests")) == (1, 3)


@pytest.mark.slow
def test_what_is_no_verdict_is_no_kill(tmp_path: Path):
    run = tried(tmp_path, "done == [1, 2] or __import__('os')._exit(0)")
    assert run.returncode == 2
    assert "no verdict" in run.stdout + run.stderr
    assert "killed by" not in run.stdout


@pytest.mark.slow
def test_a_mutant_without_an_end_is_killed(tmp_path: Path):
    run = tried(tmp_path, "done == [1, 2] or [0 for _ in iter(int, 1)]", "--within", "0.1")
    assert run.returncode == 0
    assert "killed by having no end" in run.stdout
    assert "1 of 1 mutants killed, 2 not tried." in run.stdout
    assert "--seed " in run.stdout


@pytest.mark.slow
def test_tests_that_fail_as_they_are_are_told_apart(tmp_path: Path):
    run = tried(tmp_path, "done == []")
    assert run.returncode == 2
    assert run.stderr.startswith("The tests fail as they are: ")
    assert "test_it" in run.stderr


def test_every_rule_is_found_and_has_a_known_requirement():
    known = requirements.load(ROOT / "docs" / "reference" / "requirements.json").by_id
    places = mutate_rows.all_rules()
    folders = ("kraft", "zookeeper", "kip_455", "kip_236_old", "kip_236_new")
    assert {f"simulation.reassignment.{each}.{each}_rules" for each in folders} <= {
        each.module for each in places
    }
    for place in places:
        mutants = list(mutate_rows.mutants_of(place))
        if isinstance(place.rule, Row):
            assert len(mutants) == 1 + len(place.rule.then)
        ids = mutate_rows.ids_of(mutants[0])
        assert ids, place
        assert set(ids) <= set(known), place


def test_a_mutant_changes_its_row_alone():
    effects: Any = ("a", "b", "c")
    other: Row[Any, Any] = Row("C-01", lambda _: True, effects)
    seen: list[Any] = []
    for number in range(4):
        row = Row("C-01", other.when, other.then)
        list(mutate_rows.mutants_of(mutate_rows.Place(row, "mine")))[number].apply()
        seen.append((row.when(None), row.then))
    assert seen == [
        (False, ("a", "b", "c")),
        (True, ("b", "c")),
        (True, ("a", "c")),
        (True, ("a", "b")),
    ]
    assert (other.when(None), other.then) == (True, effects)
    never: Row[Any, Any] = Row("C-01", lambda _: False, effects)
    always = list(mutate_rows.mutants_of(mutate_rows.Place(never, "mine"), conditions=True))[1]
    always.apply()
    assert (never.when(None), always.change) == (True, "always matching")


def mutated(rule: Any) -> dict[str, Any]:
    """What each mutant changes, by its description."""
    mutants = mutate_rows.mutants_of(mutate_rows.Place(rule, "mine", "RULE"), releases=True)
    return {each.change: each.fields for each in mutants}


def test_facts_are_found_by_name():
    names = {each.name: each.rule for each in mutate_rows.all_rules()}
    assert names["COORDINATOR_TEXTS"] is facts.COORDINATOR_TEXTS
    assert names["GROUP_METADATA_VERSION"] is facts.GROUP_METADATA_VERSION


def test_a_fact_is_taken_from_every_release_and_given_to_others():
    backports = ((3, 9, 2), (4, 0, 1))
    assert mutated(Fact("C-01", since=(4, 1))) == {
        "in no release": {"since": (1_000,)},
        "in earlier releases, too": {"since": (0, 0)},
    }
    assert mutated(Fix("KAFKA-1", "C-01", (4, 1), "It works.", backports=backports)) == {
        "in no release": {"since": (1_000,), "backports": ()},
        "in earlier releases, too": {"since": (0, 0)},
        "without the backport 3.9.2": {"backports": ((4, 0, 1),)},
        "without the backport 4.0.1": {"backports": ((3, 9, 2),)},
    }
    assert mutated(Fact("C-01", until=(4, 1))).keys() == {"in no release", "in later releases, too"}


def test_a_varying_value_loses_each_of_its_values():
    varying = Varying("C-01", (((0, 0), "a"), ((2, 1), "b"), ((3, 0), "c")))
    assert mutated(varying) == {
        "without its first value": {"values": (((0, 0), "b"), ((3, 0), "c"))},
        "without b since 2.1": {"values": (((0, 0), "a"), ((3, 0), "c"))},
        "without c since 3.0": {"values": (((0, 0), "a"), ((2, 1), "b"))},
    }


def test_a_row_is_given_to_other_releases_on_request():
    row: Row[Any, Any] = Row("C-01", lambda _: True, (), since=(2, 4), until=(3, 0))
    assert mutated(row).keys() == {
        "never matching",
        "in earlier releases, too",
        "in later releases, too",
    }


def test_rows_that_do_not_exist_are_bad_usage(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        mutate_rows.main(["--row", "K455-99"])
    assert ended.value.code == 2
    assert "no rule matches" in capsys.readouterr().err
