"""What the run without a compiler rejects. ``.ci/run`` shows that it passes."""

from pathlib import Path

import pytest

from kproto.native.choice import HOW_TO_BUILD
from scripts import without_compiler
from scripts.distributions import ROOT
from scripts.without_compiler import Unexpected

SKIPPED = (
    "<testsuites><testsuite><testcase><skipped message='{}'/></testcase></testsuite></testsuites>"
)


def test_what_is_said_is_what_kproto_says() -> None:
    assert f"the native engine was not built; {HOW_TO_BUILD}".startswith(without_compiler.SAID)


@pytest.mark.parametrize("words", ["", "done\n", f"{without_compiler.SAID}\n" * 2])
def test_one_line_is_neither_none_nor_two(words: str) -> None:
    with pytest.raises(Unexpected, match="make does not say in one line"):
        without_compiler.said_once(words, "make")


def test_only_tests_of_the_engine_and_those_that_ask_git_may_be_skipped(tmp_path: Path) -> None:
    results = tmp_path / "results.xml"
    results.write_text(SKIPPED.format("native is absent: make engine builds it"))
    assert without_compiler.judge(results) == ["1 skipped: native is absent: make engine builds it"]
    results.write_text(SKIPPED.format("kafka is absent: install it"))
    with pytest.raises(Unexpected, match="kafka is absent"):
        without_compiler.judge(results)


def test_no_choice_of_an_engine_and_no_compiler_gets_through(monkeypatch):
    for name in ("KPROTO_ENGINE", "KPROTO_REQUIRE", "CC"):
        monkeypatch.setenv(name, "native")
    found = without_compiler.environment()
    assert "KPROTO_ENGINE" not in found
    assert "KPROTO_REQUIRE" not in found
    assert found["CC"] == "no-such-compiler"


def test_its_tests_exist() -> None:
    assert [name for name in without_compiler.TESTS if not (ROOT / name).exists()] == []
