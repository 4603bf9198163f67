"""Run ``wiredump`` in this process."""

from __future__ import annotations

import pytest

from wiredump.cli import main

__all__ = ["wiredump"]


def wiredump(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return the exit code, standard output and standard error."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out, err = capsys.readouterr()
    code = ended.value.code
    assert isinstance(code, int | None)
    return code or 0, out, err
