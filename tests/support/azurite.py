"""Azurite from npm, a server that speaks Azure Blob Storage, in a process of its own on a free
port."""

import base64
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from kproto.builds import built, run
from kproto.errors import AbsentError
from tests.support.toolchain import absent, require
from wiredump.storage import Location

__all__ = ["azurite"]

VERSION = "3.35.0"
ACCOUNT = "account"
CONTAINER = "captures"
KEY = base64.b64encode(bytes(range(64))).decode()
_LISTENS = re.compile(r"successfully listens on http://(\S+)")


def _install(folder: Path) -> None:
    command = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"]
    run([*command, f"azurite@{VERSION}"], cwd=folder)


@contextmanager
def azurite(folder: Path) -> Iterator[tuple[str, str]]:
    """Run the server; yields the URI of an empty container, and the query that belongs behind every
    path. Skips, or fails where required, without Node.js and npm."""
    require("node", "npm")
    try:
        installed = built("azurite", [VERSION], _install)
    except AbsentError as error:
        absent("azurite", str(error))
    program = installed / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    command = ["node", str(program), "--blobHost", "127.0.0.1", "--blobPort", "0", "--silent"]
    command += ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
    environment = {**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
    with (
        open(folder / "errors", "w+") as errors,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if (found := _LISTENS.search(line)) is not None:
                    uri = f"abfs://{ACCOUNT}:{quote(KEY, safe='')}@{found[1]}/{CONTAINER}"
                    query = "?enable_tls=false"
                    Location(uri + query).filesystem.create_dir(CONTAINER)
                    yield uri, query
                    return
            errors.seek(0)
            raise AssertionError(f"Azurite did not start:\n{errors.read()}")
        finally:
            process.kill()
