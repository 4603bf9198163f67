"""Circles of imports are found wherever the import statement stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import import_cycles
from scripts.import_cycles import (
    Accepted,
    c_files,
    c_uses,
    cycles,
    imports,
    main,
    modules,
    sizes,
)  # fmt: skip


def package(root: Path, **sources: str) -> Path:
    for name, source in sources.items():
        path = root / "house" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    (root / "house" / "__init__.py").write_text("")
    return root


def found(root: Path) -> list[tuple[str, ...]]:
    return [cycle.modules for cycle in cycles(imports(modules(root, ["house"])))]


@pytest.mark.parametrize(
    "back",
    [
        "import house.a",
        "from house import a",
        "from house.a import name",
        "from . import a",
        "from .a import name",
        "def f():\n    from house.a import name",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.a import name",
    ],
)
def test_every_kind_of_import_counts(tmp_path: Path, back: str) -> None:
    root = package(tmp_path, a="from house.b import f", b=back)
    assert found(root) == [("house.a", "house.b")]


def test_a_line_of_imports_is_no_circle(tmp_path: Path) -> None:
    root = package(tmp_path, a="from house import b, c", b="from house import c", c="import json")
    assert found(root) == []


def test_a_submodule_may_import_its_package(tmp_path: Path) -> None:
    root = package(tmp_path, inner__a="from house.inner import name", inner__b="")
    assert found(root) == []


def test_a_shortest_way_round_is_shown(tmp_path: Path) -> None:
    root = package(
        tmp_path,
        a="from house import b",
        b="from house import c",
        c="from house import a, d",
        d="from house import c",
    )
    (cycle,) = cycles(imports(modules(root, ["house"])))
    assert len(cycle.modules) == 4
    assert set(cycle.path) == {"house.c", "house.d"}


def test_only_circles_of_listed_modules_pass(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(import_cycles, "ROOT", tmp_path)
    root = package(tmp_path, a="from house import b", b="from house import a")
    monkeypatch.setattr(import_cycles, "modules", lambda: modules(root, ["house"]))
    monkeypatch.setattr(import_cycles, "c_files", lambda: c_files(root, ["house"]))
    monkeypatch.setattr(import_cycles, "ACCEPTED", ())
    assert main([]) == 1
    assert "house/a.py:1 uses house.b" in capsys.readouterr().out
    monkeypatch.setattr(import_cycles, "ACCEPTED", (Accepted(("house.*",), "a reason"),))
    assert main([]) == 0
    assert "a reason" in capsys.readouterr().out
    unused = Accepted(("shed.*",), "gone")
    monkeypatch.setattr(import_cycles, "ACCEPTED", (*import_cycles.ACCEPTED, unused))
    assert main([]) == 0
    assert "shed.*" in capsys.readouterr().err


def test_sizes(tmp_path: Path) -> None:
    root = package(tmp_path, a="def f():\n    def g(): pass\n", inner__b="x = 1\n")
    (root / "house" / "c.c").write_text("int x;\nint y;\n")
    outer, inner = sizes(root, ["house"])
    assert outer == {"package": "house", "files": 3, "lines": 3, "functions": 2, "c_lines": 2}
    assert inner == {"package": "house.inner", "files": 1, "lines": 1, "functions": 0, "c_lines": 0}


@pytest.mark.slow
def test_the_sources_can_be_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--sizes", "--json"]) == 0
    assert '"package": "mockbroker"' in capsys.readouterr().out


A = "static int helper(int x) { return x; }\nint a(void) {\n    return b(1);\n}\n"


@pytest.mark.parametrize(
    ("files", "circles"),
    [
        ({"a.c": A, "b.c": "int b(int x) { return a(); }"}, [("house/a.c", "house/b.c")]),
        ({"a.c": A, "b.c": "static method table[] = {{a}};\nint b(int x) { return 0; }"},
         [("house/a.c", "house/b.c")]),
        ({"a.c": A, "w.h": "static inline int b(int x) { return a(); }"},
         [("house/a.c", "house/w.h")]),
        ({"a.c": A, "b.c": "int b(int x) { return helper(x); }"}, []),
        ({"a.c": A, "b.c": '#define a 1\n/* a() */ int a(void);\nint b(int x) { return "a"[x]; }'},
         []),
        ({"a.c": A, "a.h": "static inline int b(int x) { return a(); }"}, []),
    ],
    ids=["call", "table", "header", "static", "no-use", "own-header"],
)  # fmt: skip
def test_c_files_that_use_each_other(tmp_path, files, circles):
    (tmp_path / "house").mkdir()
    for name, source in files.items():
        (tmp_path / "house" / name).write_text(source)
    uses = c_uses(c_files(tmp_path, ["house"]))
    assert [cycle.modules for cycle in cycles(uses)] == circles
    if circles:
        assert uses["house/a.c"] == {circles[0][1]: 3}
