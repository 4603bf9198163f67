"""The server under test as the operating system sees it: a process, its memory and its files."""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

__all__ = ["PASSWORD", "PEM", "USER", "Target", "serving"]

ROOT: Final = Path(__file__).parents[2]
PEM: Final = ROOT / "tests/client/localhost.pem"
"""Make a certificate for localhost with its key."""
USER: Final = "fire"
PASSWORD: Final = "brigade"
_PATIENCE: Final = 120.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_UNSERVED: Final = re.compile(
    r"^mockbroker: (?:.* from .*: .*, so it refuses the request; "
    r"|.*: the mock has no handler for it |.* requests that are not served have been reported; )"
)


class Target:
    """A running ``mockbroker serve``. Linux only, as everything is read from /proc."""

    def __init__(
        self, process: asyncio.subprocess.Process, ready: dict[str, Any], log: Path
    ) -> None:
        self._process = process
        self._proc = Path(f"/proc/{process.pid}")
        self._log = log
        pairs = [address.rsplit(":", 1) for address in ready["brokers"].values()]
        self.addresses = [(host, int(port)) for host, port in pairs]
        control = ready["control"].removeprefix("http://")
        self.control = control.rsplit(":", 1)[0], int(control.rsplit(":", 1)[1])

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    def complaints(self) -> str:
        """Return its standard error without the warnings about requests that it does not serve, of
        which a fire sends many. What remains should be empty."""
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(line for line in lines if not _UNSERVED.search(line)).strip()

    def files(self) -> int:
        """Return the number of open file descriptors."""
        return len(os.listdir(self._proc / "fd"))

    def cpu_seconds(self) -> float:
        """Return the processor time so far, user and system."""
        fields = (self._proc / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory(self, field: str = "VmRSS") -> int:
        """Return the resident bytes now; ``VmHWM`` is the peak."""
        for line in (self._proc / "status").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name == field:
                return int(rest.split()[0]) * 1024
        raise OSError(f"no {field} of this process")

    async def files_come_down_to(self, count: int) -> int:
        """Wait, within limits, until no more descriptors are open, and return their number."""
        for _ in range(int(_PATIENCE / 0.1)):
            if self.files() <= count:
                break
            await asyncio.sleep(0.1)
        return self.files()


@asynccontextmanager
async def serving(*options: str, tls: bool, sasl: bool) -> AsyncIterator[Target]:
    """Start a server on free loopback ports; it ends with the block."""
    # A standing question has the same answer each time: no random name of the controller.
    words = [sys.executable, "-m", "mockbroker", "serve", "--exit-with-parent",
             "--named-controller", "leader", "--control", "127.0.0.1:0", *options]  # fmt: skip
    if tls:
        words += ["--tls", str(PEM)]
    if sasl:
        words += ["--sasl", f"PLAIN:{USER}:{PASSWORD}"]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "stderr")
        with log.open("wb") as stderr:
            process = await asyncio.create_subprocess_exec(
                *words, stdout=asyncio.subprocess.PIPE, stderr=stderr, cwd=ROOT
            )
        try:
            assert process.stdout is not None
            async with asyncio.timeout(_PATIENCE):
                first = await process.stdout.readline()
            if not first:
                raise RuntimeError(f"mockbroker did not start: {log.read_text()}")
            yield Target(process, json.loads(first), log)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


def client_context() -> ssl.SSLContext:
    """Return a TLS context. The certificate is for localhost, but connections use the address."""
    context = ssl.create_default_context(cafile=str(PEM))
    context.check_hostname = False
    return context
