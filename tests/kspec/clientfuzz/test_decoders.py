"""The differential without Java: our three decoders agree on whatever is done to a frame, who says
otherwise is told by cause, and a seed is the same twice."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import kproto
from fuzz.planted.run import hunt
from kspec.clientfuzz.bases import Base, bases_of
from kspec.clientfuzz.cli import fuzz
from kspec.clientfuzz.comparison import shape
from kspec.clientfuzz.decoders.causes import cause_of, dissents
from kspec.clientfuzz.decoders.codecs import codecs
from kspec.clientfuzz.decoders.program_decoder import ProgramDecoder
from kspec.clientfuzz.decoders.run import play
from kspec.clientfuzz.decoders.verdicts import Verdict
from kspec.clientfuzz.frame_cases import Sample, case_of
from tests.support.engines import require_native, running
from tests.support.full import quick

KAFKA = kproto.dialect("kafka")
NO = Verdict("rejected", text="no")
PLAYED = quick(250, sampled=80)


def every(direction: str) -> list[Base]:
    return bases_of(KAFKA, [], direction)  # type: ignore[arg-type]


@pytest.mark.parametrize("direction", ["request", "response"])
def test_our_decoders_agree_to_the_letter(direction: str) -> None:
    require_native()
    with running("native"):
        ours = codecs(KAFKA)
        assert {each.name for each in ours} == {"pure", "native", "reference"}
        outcome = play(KAFKA, every(direction), ours, seed=7, cases=PLAYED)
    assert outcome.cases == PLAYED
    assert [str(each.cause) for each in outcome.causes.values()] == []


def test_a_case_is_the_same_whatever_is_played_around_it() -> None:
    bases = every("response")
    alone = case_of(KAFKA, bases, 5, 17)
    among = [case_of(KAFKA, bases, 5, number) for number in range(20)]
    assert among[17] == alone
    assert len({each.mutation.frame for each in among}) == 20
    assert case_of(KAFKA, bases, 6, 17) != alone


class Says:
    """A decoder that says the same of everything."""

    def __init__(self, name: str, verdict: Verdict) -> None:
        self.name = name
        self._verdict = verdict

    def judge(self, samples: Sequence[Sample]) -> list[Verdict]:
        return [self._verdict] * len(samples)

    def close(self) -> None:
        pass


def test_many_cases_of_one_cause_are_one_finding() -> None:
    bases = bases_of(KAFKA, [46], "response")
    liar = Says("liar", Verdict("died"))
    outcome = play(KAFKA, bases, [codecs(KAFKA)[0], liar], seed=1, cases=300)
    assert outcome.agreed == 0
    assert sum(each.count for each in outcome.findings) == 300
    assert len(outcome.findings) < 200
    assert all("liar: died, ours" in each.cause.what for each in outcome.findings)


@pytest.mark.parametrize(
    ("said", "foreign", "told"),
    [
        ({"pure": Verdict("accepted", "a"), "native": Verdict("accepted", "a")}, False, ""),
        (
            {"pure": NO, "native": Verdict("rejected", text="no, otherwise put")},
            False,
            "native: reports it differently",
        ),
        ({"pure": NO, "kafka-4.4.0": Verdict("rejected", text="another text")}, False, ""),
        (
            {"pure": Verdict("accepted", "a"), "kafka-4.4.0": Verdict("accepted", "b")},
            False,
            "kafka-4.4.0: accepts another value",
        ),
        # What Kafka's classes take, a client may take or leave.
        (
            {"pure": NO, "kafka-4.4.0": Verdict("accepted", "b"),
             "client:x": Verdict("accepted", "{}"), "client:y": Verdict("gave up")},
            False,
            "kafka-4.4.0: accepted, ours rejected",
        ),
        ({"pure": NO, "client:x": Verdict("gave up")}, False, ""),
        ({"pure": NO, "client:x": Verdict("hung")}, False, "client:x: hung, ours rejected"),
        (
            {"pure": Verdict("accepted", "a"), "client:x": Verdict("accepted", "1"),
             "client:y": Verdict("accepted", "1"), "client:z": Verdict("accepted", "2")},
            False,
            "client:z: accepts another value",
        ),
        (
            {"pure": Verdict("accepted", "a"), "client:x": Verdict("accepted", "1")},
            True,
            "client:x: accepts another value",
        ),
        ({"pure": Verdict("accepted", "a"), "client:x": NO}, True, ""),
    ],
)  # fmt: skip
def test_who_disagrees(said: dict[str, Verdict], foreign: bool, told: str) -> None:
    assert cause_of(dissents(said, foreign=foreign), "kind", "").what == told


def test_the_shape_of_a_path() -> None:
    assert shape("topics[3].partitions[10].replicas[0]") == "topics[].partitions[].replicas[]"


# ---- programs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        ("print('{\"ok\": true}', flush=True)", "accepted"),
        ('print(\'{"ok": false, "error": "no"}\', flush=True)', "rejected"),
        ('print(\'{"ok": false, "error": "MemoryError"}\', flush=True)', "died"),
        ("print('what', flush=True)", "died"),
        ("sys.exit(3)", "died"),
        pytest.param("time.sleep(60)", "hung", marks=pytest.mark.slow),
    ],
)
def test_what_a_program_does_is_a_verdict(tmp_path: Path, source: str, outcome: str) -> None:
    path = tmp_path / "decoder.py"
    path.write_text(f"import sys, time\nfor line in sys.stdin:\n    {source}\n")
    command = [sys.executable, str(path)]
    program = ProgramDecoder("mine", command, KAFKA, seconds=0.5, start_seconds=2.0)
    sample = Sample(46, 0, "response", bases_of(KAFKA, [46], "response")[0].frame)
    try:
        assert [each.outcome for each in program.judge([sample] * 2)] == [outcome] * 2
    finally:
        program.close()


@pytest.mark.slow
def test_a_right_program_has_nothing_found_in_it() -> None:
    assert hunt("decoder", 0, seed=11, cases=300, seconds=60).how == ""


# ---- the command ---------------------------------------------------------------------------------


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(fuzz, arguments)
    return done.exit_code, done.output


def test_the_command_prints_the_bytes_by_field_with_each_verdict(tmp_path: Path) -> None:
    path = tmp_path / "decoder.py"
    path.write_text("import sys\nfor line in sys.stdin:\n    print('{\"ok\": true}', flush=True)\n")
    arguments = ("diff", "--seed", "1", "--api", "46", "--cases", "30", "--kafka", "")
    code, text = run(*arguments, "--decoder", f"{sys.executable} {path}")
    assert code == 1
    assert "decoder: accepted, ours rejected" in text
    assert "throttle_time_ms int32" in text
    assert "pure " in text
    assert run(*arguments)[0] == 0


def test_json_has_every_cause_and_plays_again(tmp_path: Path) -> None:
    path = tmp_path / "decoder.py"
    path.write_text("import sys\nfor line in sys.stdin:\n    print('{\"ok\": true}', flush=True)\n")
    arguments = ("diff", "--seed", "4", "--api", "46", "--cases", "40", "--kafka", "", "--json",
                 "--decoder", f"{sys.executable} {path}")  # fmt: skip
    _, text = run(*arguments)
    first = json.loads(text)
    again = json.loads(run(*arguments)[1])
    assert first["findings"] == again["findings"]
    one = first["findings"][0]
    alone = json.loads(run(*arguments, "--only", str(one["case"]))[1])
    (same,) = alone["findings"]
    assert (same["frame"], same["who"]) == (one["frame"], one["who"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--api", "nonsense"), "is not an API of the dialect kafka"),
        (("--api", "46", "--version", "77"), "77"),
        (("--clients", "kproto"), "needs exactly one --api"),
        (("--api", "46", "--clients", "kproto", "--request"), "clients decode responses"),
        (("--api", "46", "--clients", "nobody"), "'nobody' is not a known client"),
        (("--api", "46", "--kafka", "1.0.0"), "is not one of"),
    ],
)
def test_what_makes_no_sense_is_said(arguments: tuple[str, ...], words: str) -> None:
    code, text = run("diff", "--cases", "1", *arguments)
    assert code == 2
    assert words in text
