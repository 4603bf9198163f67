"""The table of ``--seconds-by-folder``."""

from __future__ import annotations

import pytest

from tests.support.folder_seconds import folder_of

pytest_plugins = ["pytester"]


@pytest.mark.slow
def test_seconds_and_tests_by_folder(pytester: pytest.Pytester) -> None:
    source = "import time\n\nimport pytest\n\n@pytest.mark.parametrize('n', range(2))\n"
    source += "def test_it(n):\n    end = time.process_time() + 0.6\n"
    source += "    while time.process_time() < end:\n        pass\n"
    folder = pytester.mkpydir("slow")
    (folder / "test_a.py").write_text(source)
    (folder / "test_b.py").write_text("def test_it():\n    pass\n")
    (pytester.mkdir("quick") / "test_c.py").write_text("def test_it():\n    pass\n")
    plugin = ("-p", "tests.support.folder_seconds")
    loops = ("-o", "asyncio_default_fixture_loop_scope=function")
    result = pytester.runpytest_inprocess(*plugin, *loops, "--seconds-by-folder")
    result.assert_outcomes(passed=4)
    (row,) = [line for line in result.outlines if line.endswith(("slow", "quick"))]
    seconds, unit, cpu, *words = row.split()
    assert int(seconds) >= 1
    assert int(cpu) >= 1
    assert [unit, *words] == ["s", "s", "CPU", "3", "tests", "slow"]


def test_folders_are_told_apart_to_the_third_part() -> None:
    assert folder_of("tests/wiredump/spark/deep/test_a.py::test_it[a/b]") == "tests/wiredump/spark"
    assert folder_of("tests/oracle/test_a.py::test_it") == "tests/oracle"
