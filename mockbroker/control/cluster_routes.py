"""The routes of clusters in this process, and of scenarios, which run on their own clusters.

The scenarios are those that the server was given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from mockbroker.control.errors import RefusedError
from mockbroker.control.options import CLUSTER_OPTIONS
from mockbroker.control.routes import ControlRequest, Route
from mockbroker.control.schemas import ref
from mockbroker.errors import ClusterError
from mockbroker.options import ClusterOptions

__all__ = ["CLUSTER_ROUTES"]

_SCENARIO_SECONDS: Final = 60


async def _list(request: ControlRequest) -> dict[str, Any]:
    return {"clusters": [each.to_dict() for each in request.hosting]}


async def _add(request: ControlRequest) -> dict[str, Any]:
    options = dict(request.body)
    faults = options.pop("faults", ())
    return (await request.hosting.add(ClusterOptions(**options), faults)).to_dict()


async def _show(request: ControlRequest) -> dict[str, Any]:
    return request.hosting.find(request.path["cluster"]).to_dict()


async def _remove(request: ControlRequest) -> dict[str, Any]:
    return (await request.hosting.remove(request.path["cluster"])).to_dict()


async def _scenarios(request: ControlRequest) -> dict[str, Any]:
    return {"scenarios": [each.to_dict() for each in request.hosting.scenarios.values()]}


async def _run(request: ControlRequest) -> Mapping[str, Any]:
    name, scenarios = request.path["scenario"], request.hosting.scenarios
    found = scenarios.get(name)
    if found is None:
        raise RefusedError(
            404, f"no scenario {name!r:.80}; the scenarios are {', '.join(scenarios)}"
        )
    try:
        async with asyncio.timeout(_SCENARIO_SECONDS):
            return await found.report()
    except TimeoutError:
        raise ClusterError(f"{name} took longer than {_SCENARIO_SECONDS} s") from None


_NO_CLUSTER: Final = {404: "No cluster has this id."}

CLUSTER_ROUTES: Final = (
    Route("GET", "/clusters", "List the clusters of this process.", _list, ref("Clusters"),
          of_cluster=False),
    Route("POST", "/clusters", "Create and start a cluster with these options of MockCluster.",
          _add, ref("Cluster"), body=CLUSTER_OPTIONS, status=201, of_cluster=False,
          refusals={429: "There are too many clusters."}),
    Route("GET", "/clusters/{cluster}", "Show a cluster.", _show, ref("Cluster"), of_cluster=False,
          refusals=_NO_CLUSTER),
    Route("DELETE", "/clusters/{cluster}", "Stop a cluster that was created here.", _remove,
          ref("Cluster"), of_cluster=False, refusals=_NO_CLUSTER),
    Route("GET", "/scenarios", "List the scenarios.", _scenarios, ref("Scenarios"),
          of_cluster=False),
    Route("POST", "/scenarios/{scenario}", "Run a scenario and check its claims.", _run,
          ref("ScenarioRun"), body=(), of_cluster=False,
          refusals={404: "No scenario has this name."}),
)  # fmt: skip
