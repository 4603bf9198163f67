"""The list of words applies to names, comments, docstrings and messages of Python and C."""

from pathlib import Path

import pytest

from scripts import language
from scripts.language import PACKAGES, findings, main


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_packages_stay_clean(package: str) -> None:
    assert list(findings(package)) == []


@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        ("a.py", "def is_told(asked): ...", [(1, "told"), (1, "asked")]),
        ("a.py", "x = asAskedFor", [(1, "asked")]),
        ("a.py", '"""One.\n\nIt has\na packet that\nis none."""', [(4, "that is none")]),
        ("a.py", "# what nobody\n# was told", [(1, "nobody"), (2, "told")]),
        ("a.py", 'raise E(f"{x} is no text")', [(1, "is no text")]),
        ("a.py", 'x = "told"; y = {"asked_ns": 1}', []),
        ("a.py", '"""Return it if there\n    is no text."""', []),
        ("heard.py", "", [(0, "heard")]),
        ("a.c", "/* as it\n   has to */ int told;", [(1, "as it has to"), (2, "told")]),
        ("a.c", 'fail("not gone through");', [(1, "not gone through")]),
        ("a.h", "int retold_x = untold;", []),
        ("a.js", "var told;", []),
    ],
)
def test_findings(tmp_path: Path, name: str, source: str, found: list[tuple[int, str]]) -> None:
    (tmp_path / "house").mkdir()
    (tmp_path / "house" / name).write_text(source)
    shown = [(each.line, each.shown) for each in findings("house", tmp_path)]
    expected = [(line, word) for line, word in found]
    assert [
        (line, word in text.lower())
        for (line, text), (_, word) in zip(shown, expected, strict=True)
    ] == [(line, True) for line, _ in expected]


def test_the_command(tmp_path, monkeypatch, capsys):
    (tmp_path / "house").mkdir()
    (tmp_path / "house" / "a.py").write_text("told = 1\n# told\n")
    every = language.findings
    monkeypatch.setattr(language, "findings", lambda package: every(package, tmp_path))
    monkeypatch.setattr(language, "PACKAGES", ("house",))
    assert main(["house"]) == 1
    assert "house/a.py:1: 'told'; write reported, notified, or result" in capsys.readouterr().out
    assert main(["--count"]) == 0
    assert capsys.readouterr().out == "house: 2 (told 2)\n"
    (tmp_path / "house" / "a.py").write_text("x = 1\n")
    assert main(["house"]) == 0
