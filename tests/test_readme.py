"""README.md and CONTRIBUTING.md name files, links and targets that exist.

Their code blocks are run by ``tests/docs``.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "CONTRIBUTING.md")


def text(page: str) -> str:
    return (ROOT / page).read_text()


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_bytes()) <= 8_000


@pytest.mark.parametrize("page", PAGES)
def test_the_make_targets_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.M))
    named = set(re.findall(r"`make ([a-z-]+)", text(page)))
    assert named
    assert named <= targets


@pytest.mark.parametrize("page", PAGES)
def test_the_linked_files_and_headings_exist(page):
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", text(page))
    assert len(links) > 3
    for file, heading in links:
        linked = ROOT / (file or page)
        assert linked.exists(), file
        if heading:
            headings = re.findall(r"^#+ (.*)", linked.read_text(), re.M)
            assert heading in [_anchor(each) for each in headings], f"{file}#{heading}"


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-")


def test_the_folders_of_the_table_exist():
    table = text("CONTRIBUTING.md").partition("## Where things live")[2].partition("\n## ")[0]
    named = [path for row in re.findall(r"^\| (`.*?) \|", table, re.M)
             for path in re.findall(r"`([^`]+)`", row)]  # fmt: skip
    assert len(named) > 8
    assert [path for path in named if not (ROOT / path).exists()] == []
