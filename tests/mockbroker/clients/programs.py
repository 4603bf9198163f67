"""Run a client's program and read what it prints."""

from __future__ import annotations

import asyncio
from pathlib import Path

__all__ = ["run"]

SECONDS = 180


async def run(*command: str, folder: Path | None = None) -> str:
    """What the program prints; it must succeed."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=folder
    )
    try:
        async with asyncio.timeout(SECONDS):
            out, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, f"{out.decode()[-2000:]}\n{errors.decode()[-4000:]}"
    return out.decode()
