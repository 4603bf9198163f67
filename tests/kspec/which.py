"""Which clients and cases the tests play: all on all under KPROTO_FULL, which takes minutes."""

from __future__ import annotations

from itertools import groupby
from typing import Final

import pytest
from _pytest.mark import ParameterSet

from kproto.errors import AbsentError
from kspec.client_catalog import CLIENTS, Client
from kspec.runner.clients import Program
from kspec.runner.install import install
from tests.support import toolchain
from tests.support.full import FULL, drawn

__all__ = ["params", "program"]

_MARKERS: Final = {
    "python": [],
    "node": [pytest.mark.node],
    "java": [pytest.mark.java],
    "go": [pytest.mark.go],
    "rust": [],
    "c": [],
}


def params() -> list[ParameterSet]:
    """A parameter for each client of the catalog, marked with what it needs.

    Only a run with `KPROTO_FULL=1` has those in Rust, which take minutes to compile where they were
    not yet, and those apart. Of the releases that one adapter drives, the others have one, drawn by
    the seed."""
    quick = [each for each in CLIENTS if each.language != "rust" and not each.apart]
    by_adapter = groupby(quick, lambda each: (each.language, each.adapter))
    some = [each for name, same in by_adapter for each in drawn(" ".join(name), list(same), 1)]
    return [
        pytest.param(each, id=each.name, marks=_MARKERS[each.language])
        for each in (CLIENTS if FULL else some)
    ]


def program(which: Client) -> Program:
    """Installed; skips, or fails where required, without what it needs."""
    toolchain.require(*which.toolchains)
    try:
        return Program(which.name, install(which))
    except AbsentError as error:
        toolchain.absent(which.name, str(error))
        raise  # not reached: absent() never returns normally
