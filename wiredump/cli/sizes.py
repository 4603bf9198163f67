"""Sizes on command lines: 512MB, 2GiB."""

from __future__ import annotations

import re
from typing import Final

import click

__all__ = ["size"]

_LEAST_MEMORY: Final = 1_000_000


def size(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """Parse a number of bytes with a unit: 512MB (powers of 1000) or 2GiB (powers of 1024).

    Raises click.BadParameter.
    """
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(B|[kKMGT]i?B)", value.strip())
    if found is None:
        problem = f"{value!r} is not a size; use a number with a unit, such as 512MB or 2GiB"
    else:
        unit = found[2].rstrip("B")
        power = " KMGT".index(unit[:1].upper()) if unit else 0
        bytes_ = int(float(found[1]) * (1024 if "i" in unit else 1000) ** power)
        if bytes_ >= _LEAST_MEMORY:
            return bytes_
        problem = f"{value} is too little; the minimum is 1MB"
    raise click.BadParameter(problem, ctx=context, param=option)
