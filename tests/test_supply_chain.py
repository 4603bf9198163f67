"""What a build or an installation takes from elsewhere is pinned, or bounded by its major version.

Workflows name actions by commit, and images have a digest, because a tag can be moved. The extras
of users exclude the next major release of each package, because no test has run with it.
"""

import importlib.metadata
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from tests.test_repository import extras, pins, tracked

ROOT: Final = Path(__file__).parents[1]

UNPINNED: Final[dict[str, str]] = {}
"""Actions and images that are not pinned, each with the reason."""

USES: Final = re.compile(r"^\s*(?:-\s+)?uses:\s*[\"']?([^\s\"'#]+)[\"']?[ \t]*(?:#\s*(\S+))?", re.M)
FROM: Final = re.compile(r"^FROM\s+(?:--platform=\S+\s+)?(\S+)(?:\s+AS\s+(\S+))?\s*$", re.M | re.I)
COMMIT: Final = re.compile(r"[0-9a-f]{40}")
DIGEST: Final = re.compile(r"[^@\s]+:[^@\s]+@sha256:[0-9a-f]{64}")
OF_USERS: Final = ("all",)
"""The extra that includes every other one that is meant for users."""


def constraints() -> dict[str, str]:
    return pins((ROOT / "constraints.txt").read_text().splitlines())


# ---- workflows and images ------------------------------------------------------------------------


@cache
def texts() -> dict[str, str]:
    """The files that can name an action or an image."""
    named = re.compile(r"\.(ya?ml|md)$|(container|docker)file[^/]*$", re.I)
    return {name: (ROOT / name).read_text("utf-8") for name in tracked() if named.search(name)}


def actions() -> Iterator[tuple[str, str, str | None]]:
    """The file, the action with what follows its @, and the version in the comment."""
    for name, text in texts().items():
        for found in USES.finditer(text):
            yield name, found[1], found[2]


def images() -> Iterator[tuple[str, str]]:
    for name, text in texts().items():
        if re.search(r"(container|docker)file[^/]*$", name, re.I):
            stages: set[str] = set()
            for image, stage in FROM.findall(text):
                if image not in stages:
                    yield name, image
                stages.add(stage)
            for image in re.findall(r"--from=(\S+)", text):
                if image not in stages:
                    yield name, image
        elif name.startswith(".github/workflows/"):
            for job in yaml.safe_load(text)["jobs"].values():
                for service in ({"image": job.get("container")}, *job.get("services", {}).values()):
                    image = service["image"]
                    if image is not None:
                        yield name, image["image"] if isinstance(image, dict) else image


def test_every_action_is_pinned_by_a_commit_and_says_its_version() -> None:
    found = [each for each in actions() if each[1] not in UNPINNED]
    assert {name for name, _, _ in found} >= {
        ".github/workflows/ci.yml", ".github/workflows/release.yml",
    }  # fmt: skip
    for name, action, version in found:
        if action.startswith("./"):
            continue
        _, _, commit = action.partition("@")
        assert COMMIT.fullmatch(commit), f"{name}: {action} is not pinned by a commit"
        assert version, f"{name}: {action} does not say its version"
        assert re.fullmatch(r"v\d+\.\d+\.\d+", version), f"{name}: {action} # {version}"


def test_an_action_is_one_version_everywhere() -> None:
    versions: dict[str, set[tuple[str, str | None]]] = {}
    for _, action, version in actions():
        name, _, commit = action.partition("@")
        versions.setdefault(name, set()).add((commit, version))
    assert {name: each for name, each in versions.items() if len(each) > 1} == {}


def test_every_image_has_a_tag_and_a_digest() -> None:
    found = [(name, image) for name, image in images() if image not in UNPINNED]
    assert "Containerfile" in {name for name, _ in found}
    assert [each for each in found if not DIGEST.fullmatch(each[1])] == []


def test_what_is_not_pinned_is_still_there() -> None:
    assert UNPINNED.keys() <= {action for _, action, _ in actions()} | {
        each for _, each in images()
    }


@pytest.mark.parametrize(
    "text", ["- uses: a/b@v4", "  uses: 'a/b@v4'  # pinned", "uses: a/b@main", "- uses: a/b"]
)
def test_a_tag_is_seen(text: str) -> None:
    (found,) = USES.findall(text)
    assert not COMMIT.fullmatch(found[0].partition("@")[2])


def test_what_a_workflow_or_an_image_installs_is_pinned() -> None:
    commands: list[str] = []
    for name, text in texts().items():
        if name.startswith(".github/workflows/") or name == "Containerfile":
            joined = re.sub(r"\\\n\s*", "", text)
            commands += re.findall(r"pip install (.+)$", joined, re.M)
    assert len(commands) >= 3
    for command in commands:
        assert "constraints.txt" in command or re.search(r"==\d", command), command


# ---- Python packages -----------------------------------------------------------------------------


def required(extra: str) -> Iterator[Requirement]:
    """What an extra requires, with the extras that it includes."""
    for text in extras()[extra]:
        requirement = Requirement(text)
        if requirement.name == "kproto":
            for inner in requirement.extras:
                yield from required(inner)
        else:
            yield requirement


def of_users() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = list(map(Requirement, project["dependencies"]))
    for extra in OF_USERS:
        found += required(extra)
    return found


def constrained(requirement: Requirement) -> Version:
    return Version(constraints()[re.sub(r"[-_.]+", "-", requirement.name).lower()])


def test_every_extra_is_of_users_or_pinned() -> None:
    """A new extra is part of `all`, or every package in it has one version."""
    included = set(OF_USERS)
    for extra in OF_USERS:
        (whole,) = (Requirement(each) for each in extras()[extra])
        included |= whole.extras
    for each in included.copy():
        included |= {
            inner
            for text in extras()[each]
            if (named := Requirement(text)).name == "kproto"
            for inner in named.extras
        }
    for name in extras().keys() - included:
        for requirement in required(name):
            (specifier,) = requirement.specifier
            assert specifier.operator == "==", f"{name}: {requirement}"


def test_users_get_the_major_versions_that_are_tested() -> None:
    """Whatever the index offers, `kproto[all]` gets no major release without tests."""
    assert len(of_users()) > 25
    for requirement in of_users():
        version = constrained(requirement)
        assert version in requirement.specifier, (
            f"{requirement} excludes {version}, which is tested"
        )
        bounds = [each for each in requirement.specifier if each.operator == "<"]
        assert [each.version for each in bounds] == [str(version.major + 1)], str(requirement)
        assert any(each.operator == ">=" for each in requirement.specifier), str(requirement)


def test_the_tests_run_with_what_the_constraints_say() -> None:
    """Of the packages of `kproto[all]` that this environment has."""
    compared = 0
    for requirement in of_users():
        try:
            installed = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            continue  # an optional one that bootstrap could not install
        assert Version(installed) in requirement.specifier, f"{requirement} but {installed}"
        assert Version(installed).major == constrained(requirement).major, str(requirement)
        compared += 1
    assert compared >= 10


# ---- packages of other languages -----------------------------------------------------------------


def manifests(name: str) -> list[Path]:
    found = [ROOT / each for each in tracked() if Path(each).name == name]
    assert found, name
    return found


def test_maven_takes_exact_versions() -> None:
    for path in manifests("pom.xml"):
        pom = ElementTree.parse(path).getroot()
        for element in pom.iter():
            element.tag = element.tag.rpartition("}")[2]
        known = {each.tag: each.text or "" for each in pom.iterfind("./properties/*")}
        managed = pom.findall(".//dependency") + pom.findall(".//plugin")
        assert managed, path
        for each in managed:
            version = each.findtext("version") or ""
            if version.startswith("${"):
                version = known[version[2:-1]]
            assert re.fullmatch(r"\d+(\.\d+)+([.-]\w+)*", version), (path, version)


def test_go_takes_exact_versions_and_checks_them() -> None:
    for path in manifests("go.mod"):
        text = path.read_text()
        assert path.with_name("go.sum").is_file() or "require" not in text, path
        # A folder of this repository may stand in for a module.
        assert not re.search(r"\blatest\b|=>(?! \.\./)", text), path


def test_npm_takes_exact_versions() -> None:
    for path in manifests("package.json"):
        manifest = json.loads(path.read_text())
        for group in ("dependencies", "devDependencies"):
            for name, version in manifest.get(group, {}).items():
                assert re.fullmatch(r"\d+\.\d+\.\d+", version), (path, name, version)


def test_cargo_takes_exact_versions_or_one_major_version() -> None:
    for path in manifests("Cargo.toml"):
        for name, wanted in tomllib.loads(path.read_text())["dependencies"].items():
            version = wanted if isinstance(wanted, str) else wanted["version"]
            assert re.fullmatch(r"=\d+\.\d+\.\d+|[1-9]\d*(\.\d+)*|0\.\d+(\.\d+)*", version), (
                path, name, version,
            )  # fmt: skip
