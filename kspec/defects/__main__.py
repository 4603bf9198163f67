"""``python -m kspec.defects [NAME]``: the reference client or a wrong one, as an adapter."""

from __future__ import annotations

import asyncio
import json
import sys

from kspec.defects.catalog import wrong_client


async def _serve(name: str) -> None:
    client = wrong_client(name)
    print(json.dumps(client.greeting()), flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        arguments = json.loads(line)
        print(json.dumps(await client.call(arguments.pop("op"), arguments)), flush=True)
    await client.close()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1] if len(sys.argv) > 1 else ""))
