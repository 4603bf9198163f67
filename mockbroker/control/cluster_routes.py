"""Several clusters in one process, and the known stories, which run on clusters of their own."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from mockbroker.cluster_options import ClusterOptions
from mockbroker.control.options import OPTIONS
from mockbroker.control.routes import Asked, RefusedError, Route
from mockbroker.control.schemas import ref
from mockbroker.errors import ClusterError

__all__ = ["CLUSTERS"]

_LONGEST_STORY_SECONDS: Final = 60


async def _list(asked: Asked) -> dict[str, Any]:
    return {"clusters": [each.to_dict() for each in asked.hosting]}


async def _add(asked: Asked) -> dict[str, Any]:
    options = dict(asked.body)
    faults = options.pop("faults", ())
    return (await asked.hosting.add(ClusterOptions(**options), faults)).to_dict()


async def _show(asked: Asked) -> dict[str, Any]:
    return asked.hosting.find(asked.path["cluster"]).to_dict()


async def _remove(asked: Asked) -> dict[str, Any]:
    return (await asked.hosting.remove(asked.path["cluster"])).to_dict()


async def _scenarios(_asked: Asked) -> dict[str, Any]:
    from mockbroker.scenarios import SCENARIOS  # they bring the admin client

    return {
        "scenarios": [
            {"name": each.name, "title": each.title, "requirements": list(each.requirements)}
            for each in SCENARIOS.values()
        ]
    }


async def _run(asked: Asked) -> dict[str, Any]:
    from mockbroker.scenarios import SCENARIOS, ScenarioError, Story

    name = asked.path["scenario"]
    found = SCENARIOS.get(name)
    if found is None:
        raise RefusedError(404, f"no scenario {name!r:.80}; there are {', '.join(SCENARIOS)}")
    lines: list[str] = []
    story = Story(lines.append)
    told: dict[str, Any] = {"name": name, "title": found.title, "ok": True}
    try:
        async with asyncio.timeout(_LONGEST_STORY_SECONDS):
            await found.run(story)
    except ScenarioError as error:
        told |= {"ok": False, "error": str(error)}
    except TimeoutError:
        raise ClusterError(f"{name} took longer than {_LONGEST_STORY_SECONDS} s") from None
    return {**told, "facts": story.facts, "lines": lines}


_NO_CLUSTER: Final = {404: "No cluster has this id."}

CLUSTERS: Final = (
    Route("GET", "/clusters", "The clusters of this process.", _list, ref("Clusters"),
          of_cluster=False),
    Route("POST", "/clusters", "Make a cluster and start it, of these arguments of MockCluster.",
          _add, ref("Cluster"), body=OPTIONS, status=201, of_cluster=False,
          refusals={429: "There are too many."}),
    Route("GET", "/clusters/{cluster}", "One of them.", _show, ref("Cluster"), of_cluster=False,
          refusals=_NO_CLUSTER),
    Route("DELETE", "/clusters/{cluster}", "Stop one that was made here.", _remove, ref("Cluster"),
          of_cluster=False, refusals=_NO_CLUSTER),
    Route("GET", "/scenarios", "The known stories of reassignments.", _scenarios, ref("Scenarios"),
          of_cluster=False),
    Route("POST", "/scenarios/{scenario}", "Tell and check one, on clusters of its own.", _run,
          ref("Telling"), body=(), of_cluster=False, refusals={404: "No scenario is called so."}),
)  # fmt: skip
