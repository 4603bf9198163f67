"""The lists of expected results, and a few tests of each suite against the mock.

``make suites`` runs all tests of all suites.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suites.__main__ import ABSENT, ROOT
from tests.suites.catalog import SUITES
from tests.suites.expectations import ASKS_NO_BROKER, Expectations, Expected
from tests.suites.golang import ended_tests
from tests.suites.librdkafka import Program, programs_of, statuses
from tests.suites.model import ClusterNeeds, Status, Suite
from tests.suites.rdkafka import executables_of, listed_tests, status_of
from tests.suites.targets import COUNTERPARTS, MOCK, MockTarget
from tests.support.toolchain import absent, require

REAL = COUNTERPARTS[MOCK]
QUICK_SECONDS = 300
MARKS = {"go": pytest.mark.go, "node": pytest.mark.node, "java": pytest.mark.java}

QUICK = {name: suite for name, suite in SUITES.items() if not suite.only_whole}
SUITE_PARAMETERS = [
    pytest.param(suite, id=name, marks=[MARKS[each] for each in suite.toolchains if each in MARKS])
    for name, suite in QUICK.items()
]


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITE_PARAMETERS)
async def test_quick_tests_of_a_suite(suite: Suite) -> None:
    require(*suite.toolchains)
    command = [sys.executable, "-m", "tests.suites", "--suite", suite.name, "--quick"]
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(QUICK_SECONDS):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    text = output.decode()
    if process.returncode == ABSENT:
        absent(suite.name, text.strip().splitlines()[-1])
    assert process.returncode == 0, text
    assert f"{len(suite.quick)} passed" in text


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_every_failure_has_a_reason(suite: Suite) -> None:
    expectations = Expectations.read(suite.name)
    assert expectations.targets[MOCK].passed
    assert expectations.without_reason() == []
    for expected in expectations.targets.values():
        lists = [expectations.left_out, expected.passed, expected.skipped, expected.failed]
        assert sum(map(len, lists)) == len(set().union(*lists)), "a test is in two lists"


def test_suites_without_quick_tests() -> None:
    assert [suite.name for suite in SUITES.values() if suite.only_whole] == [
        "librdkafka",
        "rdkafka",
        "kafka-connect",
        "mirror-maker",
    ]
    assert all(bool(suite.quick) is not bool(suite.only_whole) for suite in SUITES.values())
    command = [sys.executable, "-m", "tests.suites", "--suite", "librdkafka", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "librdkafka has no quick tests: building them takes minutes\n"


@pytest.mark.parametrize("suite", QUICK.values(), ids=QUICK)
def test_quick_tests_pass_on_both_sides(suite: Suite) -> None:
    targets = Expectations.read(suite.name).targets
    assert {*suite.quick} <= targets[MOCK].passed & targets[suite.real].passed


# ---- lists ---------------------------------------------------------------------------------------


def lists() -> Expectations:
    return Expectations(
        "any",
        {"Left": "takes an hour"},
        {
            MOCK: Expected({"Good"}, {"Off"}, {"Bad": "no transactions"}),
            REAL: Expected({"Good", "Bad"}, {"Off"}, {"Worse": "needs Kafka 5"}),
        },
    )


AGREED = {"Good": Status.PASSED, "Off": Status.SKIPPED, "Bad": Status.FAILED}


def test_results_that_agree_with_the_lists() -> None:
    assert [*lists().problems(MOCK, AGREED, None)] == []
    assert [*lists().problems(MOCK, {"Bad": Status.FAILED}, ["Bad"])] == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"Good": Status.FAILED}, "Good failed, but must pass"),
        ({"Good": Status.SKIPPED}, "Good was skipped, but must pass"),
        ({"Good": None}, "Good did not run"),
        ({"Bad": Status.PASSED}, "Bad passed, but is known to fail"),
        ({"Bad": Status.SKIPPED}, "Bad was skipped, but is known to fail"),
        ({"Bad": None}, "Bad did not run"),
        ({"Off": Status.PASSED}, "Off passed, but the suite skipped it before"),
        ({"New": Status.PASSED}, "New passed, and no list has it"),
        ({"New": Status.FAILED}, "New failed, and no list has it"),
        ({"Left": Status.PASSED}, "Left passed, and no list has it"),
    ],
)
def test_a_result_that_no_list_has(change: dict[str, Status | None], problem: str) -> None:
    results = {name: status for name, status in {**AGREED, **change}.items() if status is not None}
    assert [*lists().problems(MOCK, results, None)] == [problem]


def test_a_chosen_test_that_does_not_run() -> None:
    assert [*lists().problems(MOCK, {}, ["Good"])] == ["Good did not run"]


def test_a_failure_without_a_reason() -> None:
    expectations = lists()
    expectations.targets[MOCK].failed["Bad"] = " "
    assert [*expectations.problems(MOCK, AGREED, None)] == [
        "Bad failed, and its list gives no reason"
    ]
    assert expectations.without_reason() == ["Bad"]


def test_a_test_that_is_left_out_without_a_reason() -> None:
    expectations = lists()
    expectations.left_out["Left"] = ""
    assert [*expectations.problems(MOCK, AGREED, None)] == [
        "Left is left out, and no reason is given"
    ]


def test_a_test_that_is_left_out_leaves_every_list() -> None:
    expectations = lists()
    expectations.left_out.update(Good="slow", Worse="slow")
    expectations.update(MOCK, {"Bad": Status.FAILED}, None)
    assert expectations.targets[REAL] == Expected({"Bad"}, {"Off"}, {})


def test_writing_keeps_reasons_and_drops_tests_that_are_gone(tmp_path: Path) -> None:
    expectations = lists()
    results = {"Bad": Status.FAILED, "Worse": Status.FAILED, "New": Status.FAILED}
    expectations.update(MOCK, results, None)
    expectations.write(tmp_path)
    read = Expectations.read("any", tmp_path)
    assert read == expectations
    assert read.targets[MOCK] == Expected(
        set(), set(), {"Bad": "no transactions", "Worse": f"as on {REAL}: needs Kafka 5", "New": ""}
    )
    read.update(MOCK, {"New": Status.PASSED}, ["New"])
    assert read.targets[MOCK].passed == {"New"}
    assert read.targets[MOCK].failed.keys() == {"Bad", "Worse"}


def test_tests_that_pass_without_a_broker_are_left_out() -> None:
    expectations = lists()
    expectations.left_out["Old"] = ASKS_NO_BROKER
    results = {"Unit": Status.PASSED, "Old": Status.FAILED, "Good": Status.FAILED}
    expectations.update("nothing", results, None)
    assert expectations.left_out == {"Left": "takes an hour", "Unit": ASKS_NO_BROKER}


# ---- the output of Go's tests --------------------------------------------------------------------


def events(*lines: str) -> list[str]:
    """``test2json``'s lines for ``ACTION TEST [OUTPUT]``."""
    made = []
    for line in lines:
        action, test, *output = line.split(" ", 2)
        made.append(json.dumps({"Action": action, "Test": test, "Output": "".join(output)}))
    return ["not JSON", '{"Action":"start","Package":"p"}', *made, '{"Action":"fail"}']


def test_subtests_belong_to_their_test() -> None:
    lines = events(
        "run TestA", "run TestB", "run TestA/one", "output TestA/one a wrong offset",
        "fail TestA/one", "pass TestB", "fail TestA", "run TestC", "skip TestC", "run TestD",
    )  # fmt: skip
    assert [*ended_tests(lines)] == [
        ("TestB", Status.PASSED, ""),
        ("TestA", Status.FAILED, "a wrong offset"),
        ("TestC", Status.SKIPPED, ""),
    ]


def test_tests_that_run_when_the_time_is_up_have_failed() -> None:
    lines = events(
        "run TestA", "pause TestA", "run TestB", "pause TestB", "run TestC", "pass TestC",
        "cont TestB", "output TestB panic: test timed out after 5m0s", "fail TestB",
    )  # fmt: skip
    assert [(name, status) for name, status, _ in ended_tests(lines)] == [
        ("TestC", Status.PASSED),
        ("TestB", Status.FAILED),
    ]


def test_subtests_of_a_split_test_are_tests_of_their_own() -> None:
    lines = events(
        "run TestA", "run TestA/one", "run TestA/two/deep", "output TestA/one x",
        "fail TestA/one", "pass TestA/two/deep", "fail TestA",
    )  # fmt: skip
    assert [*ended_tests(lines, ["TestA"])] == [
        ("TestA/one", Status.FAILED, "x"),
        ("TestA/two/deep", Status.PASSED, ""),
        ("TestA", Status.PASSED, ""),
    ]
    lines = events("run TestA", "run TestA/one", "pass TestA/one", "fail TestA")
    assert [status for _, status, _ in ended_tests(lines, ["TestA"])] == [
        Status.PASSED,
        Status.FAILED,
    ]


# ---- librdkafka's table of tests -----------------------------------------------------------------

TABLE = """
#define _TEST(NAME, FLAGS, ...)
struct test tests[] = {
    {.name = "<MAIN>", .flags = TEST_F_LOCAL},
    _TEST(0001_plain, 0),
    _TEST(0002_with_local, 0, TEST_BRKVER(0, 11, 0, 0), /* long */ _THRES(.ucpu = 4.0)),
    _TEST(0002_with_local_mock,
          TEST_F_LOCAL | TEST_F_KNOWN_ISSUE,
          .extra = "anything"),
#if WITH_SOCKEM
    _TEST(0002_other, TEST_F_SOCKEM),
#endif
    _TEST(0003_elsewhere,
          0,
          TEST_BRKVER(0, 9, 0, 0),
          .scenario = "noautocreate"),
    _TEST(0004_both, 0, .scenario = "default,ak23"),

    {NULL}};
_TEST(0005_no_entry, 0);
"""


def test_programs_of_the_table() -> None:
    assert programs_of(TABLE) == {
        Program("default", "0001", False): ["0001_plain"],
        Program("default", "0002", False): ["0002_with_local", "0002_other"],
        Program("default", "0002", True): ["0002_with_local_mock"],
        Program("noautocreate", "0003", False): ["0003_elsewhere"],
        Program("default", "0004", False): ["0004_both"],
    }


def test_statuses_of_a_program() -> None:
    names = ["0002_one", "0002_two", "0002_three", "0002_four"]
    states = dict(zip(names, ["PASSED", "SKIPPED", "FAILED", "DNS"], strict=True))
    assert [*statuses(names, states)] == [
        ("0002_one", Status.PASSED),
        ("0002_two", Status.SKIPPED),
        ("0002_three", Status.FAILED),
    ]
    assert [*statuses(names, {"0002_one": "RUNNING"})] == [(name, Status.FAILED) for name in names]


# ---- the output of cargo and of Rust's tests -----------------------------------------------------


def artifact(name: str, kind: str, *, test: bool = True, executable: str | None = "/x") -> str:
    return json.dumps(
        {
            "reason": "compiler-artifact",
            "target": {"name": name, "kind": [kind]},
            "profile": {"test": test},
            "executable": executable,
        }
    )


def test_programs_that_cargo_built() -> None:
    messages = [
        json.dumps({"reason": "build-script-executed"}),
        artifact("librdkafka", "lib", test=False, executable=None),
        artifact("rdkafka", "lib", executable="/a"),
        artifact("roundtrip", "example"),
        artifact("test_admin", "test", executable="/b"),
        artifact("build-script-build", "custom-build", test=False),
    ]
    assert executables_of(messages) == {"rdkafka": Path("/a"), "test_admin": Path("/b")}


def test_tests_that_a_program_lists() -> None:
    listing = "test_topics: test\nutils::tests::test_all: test\nbench: benchmark\n\n2 tests\n"
    assert listed_tests(listing) == ["test_topics", "utils::tests::test_all"]


@pytest.mark.parametrize(
    ("result", "status"),
    [
        ("ok. 1 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out", Status.PASSED),
        ("ok. 0 passed; 0 failed; 1 ignored; 0 measured; 5 filtered out", Status.SKIPPED),
        ("FAILED. 0 passed; 1 failed; 0 ignored; 0 measured", Status.FAILED),
        ("ok. 0 passed; 0 failed; 0 ignored; 0 measured; 6 filtered out", Status.FAILED),
        ("", Status.FAILED),
    ],
)
def test_status_of_a_test_in_rust(result: str, status: Status) -> None:
    assert status_of(["running 1 test", f"test result: {result}"]) is status


# ---- clusters ------------------------------------------------------------------------------------


def test_ids_of_a_cluster() -> None:
    assert [*ClusterNeeds(brokers=3).ids] == [1, 2, 3]
    needs = ClusterNeeds(brokers=2, first_id=0)
    assert [*needs.ids] == [0, 1]
    assert "--brokers=0-1" in MockTarget(MOCK, "kafka-4.4").command(needs)
