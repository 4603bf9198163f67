"""The folder of ``make bundle`` runs without Python, ends with its parent, and has no part that it
must not have."""

import re
from pathlib import Path

import pytest

from scripts import bundle
from tests.support.toolchain import require_module


@pytest.mark.slow
def test_the_bundle_runs_ends_with_its_parent_and_lists_its_parts(tmp_path: Path) -> None:
    require_module("PyInstaller")
    folder = bundle.build(tmp_path)
    bundle.check(folder)
    names = {path.name for path in folder.rglob("*")}
    assert not [each for each in names if re.match(r"(lib|_)?(readline|gdbm)", each)]
    assert {"mockbroker", "releases.json", "control.md"} <= names  # schemas; pages for `help`
    listed = (folder / "licenses/README.md").read_text()
    for part in ("kproto", "Python", "aiohttp", "cryptography", "libssl"):
        assert re.search(rf"^\| {part}\S* \| .* \| .+ \|$", listed, re.M), listed
    assert (folder / "licenses/kproto/LICENSE").is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("licence", "problem"),
    [
        ("License-Expression: GPL-3.0-or-later", "odd has the licence GPL-3.0-or-later"),
        ("Classifier: License :: OSI Approved :: GNU General Public License (GPL)", "odd has the"),
        ("Summary: odd", "odd does not say its licence"),
    ],
)
def test_packages_of_the_gpl_or_without_a_licence_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, licence: str, problem: str
) -> None:
    package = tmp_path / "odd.py"
    package.write_text("")
    metadata = tmp_path / "odd-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: odd\nVersion: 1\n{licence}\n")
    (metadata / "RECORD").write_text("odd.py,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(bundle.BundleError, match=re.escape(problem)):
        bundle.parts({package})


@pytest.mark.slow
def test_libraries_without_a_known_licence_are_refused(tmp_path: Path) -> None:
    library = tmp_path / "libreadline.so.8"
    library.write_bytes(b"")
    with pytest.raises(bundle.BundleError, match=r"libreadline.so.8 is unknown"):
        bundle.parts({library})
