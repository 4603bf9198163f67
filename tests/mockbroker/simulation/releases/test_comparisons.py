"""Only ``simulation/releases`` compares releases; everything else asks for a fact or has rows.

A comparison in line would have no requirement and no mutant.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mockbroker

ROOT = Path(mockbroker.__file__).parent
ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
MEMBERSHIP = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
NAMES_RELEASE = re.compile(r"(^|_)(release|line|software)$")


def is_number(node: ast.expr) -> bool:
    """Whether this is a number of a release, such as (4, 1) or (4, 1, 2)."""
    return (
        isinstance(node, ast.Tuple)
        and 2 <= len(node.elts) <= 4
        and all(isinstance(part, ast.Constant) and type(part.value) is int for part in node.elts)
    )


def constants(tree: ast.AST) -> set[str]:
    """The names that the module binds to a tuple of integers."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value and is_number(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def is_release(node: ast.expr, named: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        if node.attr == "number":
            return is_release(node.value, named)
        return bool(NAMES_RELEASE.search(node.attr)) or node.attr in ("since", "until")
    if isinstance(node, ast.Name):
        return bool(NAMES_RELEASE.search(node.id)) or node.id in named
    return False


def comparisons(source: str) -> Iterator[str]:
    """Each comparison of releases, as text."""
    tree = ast.parse(source)
    named = constants(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        operands = [node.left, *node.comparators]
        releases = any(is_release(each, named) for each in operands)
        numbers = any(is_number(each) for each in operands)
        nested = any(
            isinstance(each, ast.Tuple) and each.elts and all(map(is_number, each.elts))
            for each in operands
        )
        ordered = any(isinstance(each, ORDER) for each in node.ops)
        member = any(isinstance(each, MEMBERSHIP) for each in node.ops)
        if (ordered and (releases or numbers)) or (member and releases and (numbers or nested)):
            yield f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.slow
def test_no_module_compares_releases() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {each}"
        for path in ROOT.rglob("*.py")
        if path.parent != ROOT / "simulation" / "releases"
        for each in comparisons(path.read_text(encoding="utf-8"))
    }
    assert not found, "name a fact in simulation/releases/facts.py, or give a row a since or until"


@pytest.mark.parametrize(
    "planted",
    [
        "call.profile.line >= (2, 4)",
        "(2, 4) <= x <= y",
        "first <= profile.line <= last",
        "release < other",
        "self._release >= kind.since",
        "release == (4, 1, 2)",
        "call.release.number > other",
        "line in ((2, 4), (2, 5))",
        "_EPOCHS: Final = (4, 3)\nvalue > _EPOCHS",
        "[row for row in rows if row.until > at]",
    ],
)
def test_a_planted_comparison_is_found(planted: str) -> None:
    whole = (ROOT / "apis" / "handlers" / "metadata.py").read_text(encoding="utf-8")
    assert not list(comparisons(whole))
    assert len(list(comparisons(f"{whole}\n{planted}\n"))) == 1


@pytest.mark.parametrize(
    "other",
    [
        "replicas == (1, 2, 3)",
        "call.version in (10, 11)",
        "since > interval",
        "release is None",
        "release.has(facts.COORDINATOR_TEXTS)",
    ],
)
def test_other_comparisons_are_not(other: str) -> None:
    assert not list(comparisons(other))
