"""Promises about the repository itself: sizes, docstrings, files at the edges, paths, the wheel.

What README.md shows is run by ``test_readme.py``; who may import whom is for ``lint-imports``.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("kproto", "mockbroker", "wiredump", "kspec")
GENERATED = ("kproto/messages/",)
"""Folders that ``kproto codegen`` writes."""

LONG = 700
"""Lines of a hand-written source from which the run advises to cut it, by meaning."""

EDGES = (
    "kproto/schema/load.py",
    "kproto/schema/importer",
    "kproto/client/",
    "kproto/tools/",
    "kproto/cli/",
    "mockbroker/cli/",
    "mockbroker/server",
    "mockbroker/control",
    "mockbroker/pytest_plugin.py",
    "wiredump/readers/capture.py",
    "wiredump/tables",
    "wiredump/spark/",
    "kspec/cli/",
    "kspec/runner",
)
"""Where files may be opened, beside every ``__main__.py``."""

KNOWN_HOSTS = {
    "127.0.0.1",
    "arrow.apache.org",
    "cwiki.apache.org",
    "github.com",
    "issues.apache.org",
    "kafka.apache.org",
    "keepachangelog.com",
    "localhost",
    "maven.apache.org",
    "semver.org",
    "opencollective.com",  # where npm's lock file says a dependency is funded
    "www.apache.org",
    "www.w3.org",  # XML namespaces
}


@cache
def tracked() -> list[str]:
    """Every file git tracks or would, as a path from the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout: nothing says which files are the repository's")
    return sorted(name for name in done.stdout.splitlines() if (ROOT / name).is_file())


def hand_written() -> list[str]:
    return [name for name in tracked() if name.endswith(".py") and not name.startswith(GENERATED)]


def packaged() -> list[str]:
    return [name for name in hand_written() if name.startswith(PACKAGES)]


def texts() -> dict[str, str]:
    found = {}
    for name in tracked():
        try:
            found[name] = (ROOT / name).read_text("utf-8")
        except UnicodeDecodeError:
            continue  # captures and vectors are bytes
    return found


@cache
def parsed(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text())


def test_long_files_are_noted(note: Callable[[str], None]):
    """Advice, not a rule: a table of rows may be longer than a controller should be."""
    for name in hand_written():
        length = len((ROOT / name).read_text().splitlines())
        if length > LONG:
            note(f"{name} has {length} lines")


@pytest.mark.slow
def test_every_module_says_what_it_knows():
    silent = [name for name in packaged() if not ast.get_docstring(parsed(name))]
    assert silent == []


@pytest.mark.slow
def test_every_public_module_names_its_exports():
    """``__all__`` is there and true: each name is bound in the module."""
    silent, untrue = [], {}
    for name in packaged():
        if Path(name).name == "__main__.py" or Path(name).name.startswith("_"):
            continue
        tree = parsed(name)
        bound = _bound(tree)
        if "__all__" not in bound and any(
            isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            for node in tree.body
        ):
            silent.append(name)
        missing = _exported(tree) - bound
        if missing:
            untrue[name] = missing
    assert silent == []
    assert untrue == {}


def _bound(tree: ast.Module) -> set[str]:
    """Every name that the module binds at its top, behind ``if TYPE_CHECKING`` included."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
    return found


def _exported(tree: ast.Module) -> set[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                return set(ast.literal_eval(node.value))
    return set()


@pytest.mark.slow
def test_files_are_opened_only_at_the_edges():
    """What the import contracts cannot see: the builtin ``open``."""
    opened = [
        f"{name}:{node.lineno}"
        for name in packaged()
        if not name.startswith(EDGES) and not name.endswith("__main__.py")
        for node in ast.walk(parsed(name))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
    ]
    assert opened == []


def test_no_path_of_a_developers_machine():
    pattern = re.compile(r"(?<![\w.$}])/(?:root|home|work|Users)/\w")
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_only_known_hosts_are_named():
    """A registry's mirror or a colleague's machine does not slip into the repository."""
    pattern = re.compile(r"https?://(?:[^/@\s]*@)?([a-z0-9.-]+)")
    found = {
        (name, host)
        for name, text in texts().items()
        for host in pattern.findall(text)
        # A name without a dot is nobody's: tests use them for hosts that do not exist.
        if "." in host and host not in KNOWN_HOSTS
        if not host.endswith((".example", ".example.com", ".invalid"))
    }
    assert found == set()


def test_version_and_changelog_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    newest = re.search(r"^## \[(\d+\.\d+\.\d+)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest is not None
    assert newest[1] == project["version"]


def test_the_makefile_sets_up_before_it_runs():
    """Every target that needs .venv calls the bootstrap first."""
    recipes = re.findall(
        r"^([a-z-]+):[^\n]*\n((?:\t[^\n]*\n)+)", (ROOT / "Makefile").read_text(), re.M
    )
    assert {"demo", "test", "test-fast", "lint", "bench"} <= {r[0] for r in recipes}
    unprepared = [
        target
        for target, body in recipes
        if re.search(r"\$\((PYTHON|PYTEST)\)|\.venv/bin", body)
        and not body.lstrip("\t@").startswith("$(BOOTSTRAP)")
    ]
    assert unprepared == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy: a build leaves folders behind that the next one would pack."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(out)]
    subprocess.run([*command, str(source)], check=True)
    (built,) = out.glob("kproto-*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_carries_every_package_and_schema(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {
        name
        for name in tracked()
        if name.startswith(tuple(f"{package}/" for package in PACKAGES))
        and name.endswith((".py", ".pyi", ".typed", ".html"))
    }
    schemas = {
        f"kproto/_schemas/{name.removeprefix('schemas/')}"
        for name in tracked()
        if name.startswith("schemas/") and name.endswith(".json")
    }
    suite = {name for name in tracked() if name.startswith(("kspec/cases/", "kspec/adapters/"))}
    assert schemas
    assert suite
    assert sources | schemas | suite <= names
    assert not {name for name in names if name.startswith(("tests", "benchmarks", "scripts"))}


@pytest.mark.slow
@pytest.mark.requirement("C-01")
def test_the_wheel_works_away_from_the_checkout(wheel, tmp_path):
    """Installed without the repository beside it, the codec still finds its schemas."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        "import kproto, pathlib\n"
        "from kproto.messages import HeartbeatRequest\n"
        f"assert pathlib.Path(kproto.__file__).is_relative_to({str(tmp_path)!r})\n"
        "body = HeartbeatRequest(group_id='g', member_id='m')\n"
        "assert HeartbeatRequest.decode(body.encode(4), 4) == body\n"
    )
    environment = {"PYTHONPATH": str(tmp_path), "PATH": ""}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)
