"""Build the distributions into ``dist/`` and show that they are fit for release.

    make release-check

1. Build the source distribution, and a wheel from it.
2. Check the metadata (``twine check --strict``), the version, and which files they have.
3. Follow README.md in a clean environment that has only the wheel: ``new_user``.

Exits with 1 at the first problem. docs/how-to/release.md has the steps of a release.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import kproto
from scripts.distributions import ROOT, BadDistributionError, build, check_files
from scripts.new_user import WalkError, walk

__all__ = ["main"]

DIST = ROOT / "dist"


def check() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    files = build(DIST)
    wheel, sdist = sorted(files, key=lambda path: path.suffix != ".whl")
    for file in (sdist, wheel):
        print(check_files(file), flush=True)
        version = re.match(r"kproto-([^-]+?)(?:\.tar\.gz|-)", file.name)
        if version is None or version[1] != kproto.__version__:
            raise BadDistributionError(f"{file.name} is not version {kproto.__version__}")
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, files)]
    if subprocess.call(command):
        raise BadDistributionError("twine does not accept the metadata")
    walk(wheel)


def main() -> None:
    try:
        check()
    except (BadDistributionError, WalkError) as error:
        sys.exit(f"release_check: {error}")
    print("release_check: dist/ is fit for release")


if __name__ == "__main__":
    main()
