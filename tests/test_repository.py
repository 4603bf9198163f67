"""Promises about the repository itself: sizes, docstrings, files at the edges, paths, the wheel.

What README.md shows is run by ``tests/docs``; who may import whom is for ``lint-imports``.
"""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import yaml

import kproto

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
    "mockbroker/serving",
    "mockbroker/control",
    "mockbroker/pytest_plugin.py",
    "wiredump/readers/capture.py",
    "wiredump/tables",
    "wiredump/spark/",
    "kspec/cli/",
    "kspec/runner",
)
"""Where files may be opened, beside every ``__main__.py``."""

OTHERS_PRIVATE = frozenset(
    {
        *("_asdict", "_fields", "_make", "_replace"),  # public methods of named tuples
        "_exit",  # of os
        "_ensure_initialized",  # SparkContext has no public way to start its JVM alone
        *("_params", "_parsereport"),  # what a construct of one's own is made of
        "_unknown_tags",  # the slot of every message class: kproto/codec/structs.py
    }
)
"""Private names of others that may be used."""

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
    "www.cve.org",
    "www.rfc-editor.org",
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
    """``__all__`` is there and true: each name is bound in the module. The modules of operations
    export nothing, since each operation is reached through its declaration."""
    silent, untrue = [], {}
    for name in packaged():
        if Path(name).name == "__main__.py" or Path(name).name.startswith("_"):
            continue
        tree = parsed(name)
        bound = _bound(tree)
        defines = any(
            isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            for node in tree.body
        )
        if defines and "__all__" not in bound and "operations/subjects" not in name:
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
def test_private_attributes_stay_in_their_module():
    """``thing._name`` only where the module itself has a ``_name``, and no private name is imported
    but the extensions."""
    foreign = [
        f"{name}:{node.lineno} {node.attr}"
        for name in packaged()
        for own in [_private_names(parsed(name))]
        for node in ast.walk(parsed(name))
        if isinstance(node, ast.Attribute) and node.attr not in own | OTHERS_PRIVATE
        if node.attr.startswith("_") and not node.attr.startswith("__")
        if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]
    imported = [
        f"{name} {alias.name}"
        for name in packaged()
        for node in ast.walk(parsed(name))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name.startswith("_") and alias.name not in ("_engine", "_quick")
    ]
    assert foreign + imported == []


@pytest.mark.slow
def test_constructors_change_no_other_object():
    """What one object needs of another is an argument of its constructor, or a method's: nothing is
    patched in after construction. ``sni_callback`` is how Python's ssl takes one."""
    patched = [
        f"{name}:{target.lineno} {ast.unparse(target)}"
        for name in packaged()
        for function in ast.walk(parsed(name))
        if isinstance(function, ast.FunctionDef) and function.name == "__init__"
        for node in ast.walk(function)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute) and target.attr != "sni_callback"
        if isinstance(target.value, ast.Attribute)
    ]
    assert patched == []


def _private_names(tree: ast.Module) -> set[str]:
    """The private attributes that a module defines: methods, slots, fields, and what it assigns to
    ``self``."""
    found = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                found.add(node.attr)
        elif isinstance(node, ast.ClassDef):
            found |= _bound(ast.Module(node.body, []))
    return found


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


@pytest.mark.slow
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
    """``kproto.__version__`` is the only place: pyproject.toml reads it from there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"] == {"version": {"attr": "kproto.__version__"}}
    assert importlib.metadata.version("kproto") == kproto.__version__
    newest = re.search(r"^## \[(\d+\.\d+\.\d+)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest is not None
    assert newest[1] == kproto.__version__


def pins(requirements: list[str]) -> dict[str, str]:
    """Package name -> version of the requirements that are pinned."""
    found = (re.match(r"([\w.-]+)==([\w.]+)", each) for each in requirements)
    return {_package(match[1]): match[2] for match in found if match}


def _package(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def extras() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: dict[str, list[str]] = project["optional-dependencies"]
    return found


def test_each_package_has_one_pinned_version():
    """In the extras, in constraints.txt, for pre-commit, and in the workflows."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    places = {
        **{f"extra {name}": pins(wanted) for name, wanted in extras().items()},
        "pre-commit": pins([each for hook in hooks for each in hook["additional_dependencies"]]),
        "workflows": pins(
            [
                word
                for name in tracked()
                if name.startswith(".github/workflows/")
                for word in (ROOT / name).read_text().split()
            ]
        ),
    }
    constraints = pins((ROOT / "constraints.txt").read_text().splitlines())
    assert {"ruff", "pyyaml"} <= places["pre-commit"].keys()
    differing = {
        (place, package, version, constraints[package])
        for place, found in places.items()
        for package, version in found.items()
        if constraints.get(package, version) != version
    }
    assert differing == set()


@pytest.mark.slow
def test_only_extras_that_exist_are_named():
    named = {
        (name, extra)
        for name, text in texts().items()
        if not name.startswith("tests/")
        for group in re.findall(r"\bkproto\[([a-z][a-z,-]*)\]", text)
        for extra in group.split(",")
    }
    assert {extra for _, extra in named} >= {"mock", "records", "spark", "wiredump"}
    assert {each for each in named if each[1] not in extras()} == set()


def test_one_address_of_the_repository():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    address = project["urls"]["Repository"]
    others = {
        (name, found)
        for name, text in texts().items()
        for found in re.findall(r"https://github\.com/kproto/[\w.-]*", text)
        if found.removesuffix(".git").rstrip(".") != address
    }
    assert others == set()


def test_the_workflows_run_what_is_here():
    """Their commands name targets, modules, folders and Pythons that exist."""
    workflows = [ROOT / name for name in tracked() if name.startswith(".github/workflows/")]
    assert {path.name for path in workflows} == {"ci.yml", "release.yml"}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    for path in workflows:
        text = path.read_text()
        commands = [
            step["run"] for job in yaml.safe_load(text)["jobs"].values() for step in job["steps"]
            if "run" in step
        ]  # fmt: skip
        assert set(re.findall(r"\bmake ([a-z-]+)", "\n".join(commands))) <= targets
        for module in re.findall(r"-m (scripts\.\w+)", "\n".join(commands)):
            assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
        for folder in re.findall(r"\btests/[\w/]+", text):
            assert (ROOT / folder).is_dir(), folder
        for version in re.findall(r'"(3\.\d+)"', text):
            assert f"Programming Language :: Python :: {version}" in classifiers
    assert ".ci/run" in (ROOT / ".github/workflows/ci.yml").read_text()


def test_the_image_gets_all_that_its_build_needs():
    """``.dockerignore`` keeps out everything else."""
    kept = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.M))
    assert kept == {
        *PACKAGES,
        "schemas",
        "docs",
        "pyproject.toml",
        "constraints.txt",
        "setup.py",
        "README.md",
        "LICENSE",
        "NOTICE",
    }


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
