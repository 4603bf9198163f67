"""The plugin for requirements, on small suites of its own."""

import json
from pathlib import Path

import pytest

from tests import traceability
from tests.support import requirements

pytest_plugins = ["pytester"]
# Each test starts pytest.
pytestmark = pytest.mark.slow

FACTS = {
    "sections": [{"prefix": "X", "title": "Things"}],
    "requirements": {
        "X-01": {"says": "One."},
        "X-02": {"says": "Two."},
        "X-03": {"says": "Three.", "untestable": "a name"},
    },
}
SUITE = """
import pytest

@pytest.mark.requirement("X-01", "X-02")
@pytest.mark.parametrize("n", [1, 2])
def test_both(n):
    pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Runs a suite with the plugin: ``suite(*options, source=...)``. Its docs are the facts."""
    docs = pytester.mkdir("docs")
    monkeypatch.setattr(traceability, "DOCS", docs)
    pytester.makeini(
        "[pytest]\ntestpaths = suite\nmarkers = requirement\n"
        "asyncio_default_fixture_loop_scope = function\n"
    )

    def run(*options: str, source: str = SUITE, facts: object = FACTS) -> pytest.RunResult:
        (docs / "requirements.json").write_text(json.dumps(facts))
        folder = pytester.path / "suite"
        folder.mkdir(exist_ok=True)
        (folder / "test_it.py").write_text(source)
        return pytester.runpytest_inprocess(
            "-p", "tests.traceability", "-p", "no:cacheprovider", *options
        )

    return run


def test_the_tests_of_each_requirement_are_listed(suite, tmp_path):
    path = tmp_path / "tests.json"
    assert suite("--collect-only", f"--requirement-tests={path}").ret == 0
    listed = json.loads(path.read_text())
    assert listed == {each: {"suite/test_it.py::test_both": 2} for each in ("X-01", "X-02")}
    page = requirements.render(requirements.load(traceability.DOCS / "requirements.json"), listed)
    assert "| X-01 | One. | `suite/test_it.py::test_both` (2) |" in page
    assert "| X-03 | Three. | Untestable: a name |" in page


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("def test_it(): pass", "X-01 is not shown, no test names it: One."),
        (SUITE.replace("pass", "assert not n"), "X-02 is not shown, none passed of *test_both*"),
        (SUITE.replace("pass", "pytest.skip()"), "X-02 is not shown, none passed of *test_both*"),
        (SUITE.replace('"X-02"', '"X-02", "X-03"'), "X-03 is excused * but * shows it"),
    ],
    ids=["nothing", "failed", "skipped", "excused"],
)
def test_a_run_that_does_not_hold_fails(suite, source, line):
    run = suite("--requirements=check", source=source)
    assert run.ret not in (0, 4)
    run.stdout.fnmatch_lines([line])


def test_one_passing_variant_is_enough(suite):
    run = suite("--requirements=check", source=SUITE.replace("pass", "n == 1 or pytest.skip()"))
    assert run.ret == 0


def test_a_test_whose_clean_up_fails_has_not_passed(suite):
    run = suite(
        "--requirements=check",
        source=SUITE.replace("(n):", "(n, request):").replace("pass", "request.addfinalizer(None)"),
    )
    run.stdout.fnmatch_lines(["X-01 is not shown, none passed of *"])


@pytest.mark.parametrize("options", [("-k", "1"), ("suite/test_it.py",), ("-x", "--maxfail=1")])
def test_a_part_of_the_tests_is_not_judged(suite, options):
    run = suite("--requirements=check", *options, source=SUITE.replace("pass", "assert n == 1"))
    run.stdout.fnmatch_lines(["Requirements were not checked: *"])
    assert "X-02" not in run.stdout.str().partition("= requirements =")[2]


@pytest.mark.parametrize(("body", "ret"), [("pass", 0), ("assert not n", 1)])
def test_a_run_shared_out_to_processes(suite, body, ret):
    """Those read the facts of this repository, so its ids are used."""
    facts = {
        "sections": [{"prefix": "C", "title": "Codec"}],
        "requirements": {"C-01": {"says": "One."}, "C-02": {"says": "Two."}},
    }
    source = SUITE.replace("X-", "C-")
    run = suite("--requirements=check", "-n2", source=source.replace("pass", body), facts=facts)
    assert run.ret == ret
    if ret:
        run.stdout.fnmatch_lines(["C-01 is not shown, none passed of *test_both*"])
    run = suite("--requirements=check", "-n2", "-k", "1", source=source, facts=facts)
    run.stdout.fnmatch_lines(["Requirements were not checked: *deselected*"])


@pytest.mark.parametrize(
    ("mark", "line"),
    [('"X-99"', "*test_both*: no requirement X-99;*"), ("", "*requirement() takes ids as strings")],
)
def test_a_mark_that_names_no_requirement(suite, mark, line):
    run = suite(source=SUITE.replace('"X-01", "X-02"', mark))
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines([line])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"requirements": {"Y-01": {"says": "?"}}}, "Y-01 has a prefix of no section"),
        ({"requirements": {"X-01": "?"}}, r'X-01: use \{"says": "SENTENCE"\}'),
        ({"requirements": {"X-01": {"sais": "?"}}}, "X-01: sais exclude each other"),
        (
            {"requirements": {"X-01": {"says": "", "absent": "", "untestable": ""}}},
            "X-01: says, absent, untestable exclude each other",
        ),
    ],
)
def test_facts_that_contradict_themselves(tmp_path: Path, change, text):
    path = tmp_path / "requirements.json"
    path.write_text(json.dumps(FACTS | change))
    with pytest.raises(ValueError, match=text):
        requirements.load(path)


def test_an_entry_that_is_there_twice(tmp_path: Path) -> None:
    path = tmp_path / "requirements.json"
    path.write_text('{"sections": [], "requirements": {"X-01": {}, "X-02": {}, "X-01": {}}}')
    with pytest.raises(ValueError, match="X-01 is there twice"):
        requirements.load(path)
