"""Reassignments as transcripts: ``transcripts`` says how to read and write them."""

import pytest

from tests.mockbroker.simulation.reassignment.transcripts import (
    FOLDER,
    Scenario,
    cases,
    parse,
    play,
    recorded,
)


@cases("kraft")
def test_kraft(scenario: Scenario, controller: str) -> None:
    play(scenario, controller)


@cases("kip_455")
def test_kip_455(scenario: Scenario, controller: str) -> None:
    play(scenario, controller)


@cases("kip_236_old")
def test_kip_236_old(scenario: Scenario, controller: str) -> None:
    play(scenario, controller)


@cases("kip_236_new")
def test_kip_236_new(scenario: Scenario, controller: str) -> None:
    play(scenario, controller)


def test_an_output_that_differs_or_an_error_nobody_expects_fails() -> None:
    text = "[C-01] a title\non kraft\nalter 4\n  nothing\n"
    with pytest.raises(AssertionError, match="memory R=4"):
        play(*parse(text), "kraft")
    with pytest.raises(AssertionError, match="NO_REASSIGNMENT_IN_PROGRESS"):
        play(*parse("[C-01] a title\non kraft\nalter none\n"), "kraft")
    with pytest.raises(ValueError, match="begin with"):
        parse("[C-01] a title\nalter 4\n")


@pytest.mark.slow
def test_writing_outputs_replaces_only_those_that_differ() -> None:
    for path in FOLDER.glob("*.txt"):
        text = path.read_text()
        assert recorded(text) == text
    kraft = (FOLDER / "kraft.txt").read_text()
    assert recorded(kraft.replace("leader=", "?")) == kraft
