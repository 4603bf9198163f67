"""Measure which lines of the code under test a target's known inputs reach, with ``coverage``.

Generated code has no file, and libFuzzer counts C; neither is included.
"""

from __future__ import annotations

import io
import json
from typing import Any

import coverage

from fuzz.inputs import CACHE, ROOT, committed, found_folder
from fuzz.targets import Target, load

__all__ = ["measured", "report"]


def measured(target: Target) -> tuple[coverage.Coverage, int]:
    """Return the coverage of every known input and their number. The modules must not be imported
    yet."""
    CACHE.mkdir(parents=True, exist_ok=True)
    # Modules are given by file: to find them by name, coverage would import them an extra time.
    files = [str(ROOT.joinpath(*name.split("."))) for name in target.under_test]
    measuring = coverage.Coverage(
        data_file=None,
        branch=True,
        include=[each for file in files for each in (f"{file}.py", f"{file}/*")],
        config_file=False,
    )
    measuring.exclude("if TYPE_CHECKING:")
    measuring.start()
    try:
        check = load(target).check
        inputs = [*committed(target.name), *sorted(found_folder(target.name).iterdir())]
        for path in inputs:
            check(path.read_bytes())
    finally:
        measuring.stop()
    return measuring, len(inputs)


def report(target: Target, *, missing: bool) -> None:
    """Print a line, or with ``missing`` the table of files, and record the percentage."""
    measuring, number = measured(target)
    lines = io.StringIO()
    percent = measuring.report(file=lines, show_missing=missing, skip_covered=True)
    totals: Any = lines.getvalue()
    if missing:
        print(totals)
    folder = CACHE / "covered"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{target.name}.json").write_text(json.dumps(percent) + "\n")
    print(f"{target.name}: {percent:.0f} % of lines and branches, by {number} inputs")
