"""The routes of clusters in this process, and of scenarios, which run on their own clusters.

The scenarios are those that the server was given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from mockbroker.control.errors import RefusedError
from mockbroker.control.options import CLUSTER_OPTIONS
from mockbroker.control.routes import (
    TEXT,
    WAIT_TIMEOUT,
    ControlRequest,
    Member,
    Route,
    wait_timeout_ms,
)
from mockbroker.control.schemas import ref
from mockbroker.errors import ClusterError
from mockbroker.options import ClusterOptions
from mockbroker.options.listener_configs import FILES
from mockbroker.simulation.state.option_types import name_and_value

__all__ = ["CLUSTER_ROUTES"]

_SCENARIO_SECONDS: Final = 60


async def _list(request: ControlRequest) -> dict[str, Any]:
    name, value = request.query.get("label", ("", None))
    return {
        "clusters": [
            each.to_dict() for each in request.hosting if not name or each.labels.get(name) == value
        ]
    }


async def _add(request: ControlRequest) -> dict[str, Any]:
    options = dict(request.body)
    for configs in (
        options.get("broker_configs", {}),
        *options.get("own_broker_configs", {}).values(),
    ):
        _refuse_files(configs)
    hosted = await request.hosting.add(
        faults=options.pop("faults", ()),
        labels=options.pop("labels", {}),
        options=ClusterOptions(**options),
        timeout_ms=wait_timeout_ms(request),
    )
    return hosted.to_dict()


def _refuse_files(configs: Mapping[str, str]) -> None:
    for name in configs:
        if name.endswith(FILES):
            raise ClusterError(
                f"broker config {name}: a file would be one on the server's machine; give the PEM "
                "texts in ssl.keystore.certificate.chain and ssl.keystore.key, or in "
                "ssl.truststore.certificates"
            )


async def _show(request: ControlRequest) -> dict[str, Any]:
    return request.hosting.find(request.path["cluster"]).to_dict()


async def _remove(request: ControlRequest) -> dict[str, Any]:
    removed = await request.hosting.remove(request.path["cluster"])
    strict = removed.mock.options.strict_faults
    return {**removed.to_dict(), "problems": removed.mock.fault_problems() if strict else []}


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
_LABEL: Final = Member(
    "label",
    {**TEXT, "examples": ["test=TestProduce"]},
    lambda _name, text: name_and_value(text, "label=test=TestProduce"),
    "Only clusters with this label, as NAME=VALUE.",
)

CLUSTER_ROUTES: Final = (
    Route(
        "GET",
        "/clusters",
        "listClusters",
        "List the clusters of this process.",
        _list,
        ref("Clusters"),
        query=(_LABEL,),
        of_cluster=False,
    ),
    Route(
        "POST",
        "/clusters",
        "createCluster",
        "Create and start a cluster with these options of MockCluster.",
        _add,
        ref("Cluster"),
        query=(WAIT_TIMEOUT,),
        body=CLUSTER_OPTIONS,
        body_name="ClusterOptions",
        status=201,
        of_cluster=False,
        refusals={429: "There are too many clusters, and none was removed in time."},
        details="If there are too many clusters, the request waits until one is removed.",
    ),
    Route(
        "GET",
        "/clusters/{cluster}",
        "getCluster",
        "Show a cluster.",
        _show,
        ref("Cluster"),
        of_cluster=False,
        refusals=_NO_CLUSTER,
    ),
    Route(
        "DELETE",
        "/clusters/{cluster}",
        "removeCluster",
        "Stop a cluster.",
        _remove,
        ref("RemovedCluster"),
        of_cluster=False,
        refusals=_NO_CLUSTER,
        details="With the option strict_faults, `problems` names each fault rule that no request "
        "has hit, or that could not do what it is for.",
    ),
    Route(
        "GET",
        "/scenarios",
        "listScenarios",
        "List the scenarios.",
        _scenarios,
        ref("Scenarios"),
        of_cluster=False,
    ),
    Route(
        "POST",
        "/scenarios/{scenario}",
        "runScenario",
        "Run a scenario and check its claims.",
        _run,
        ref("ScenarioRun"),
        body=(),
        of_cluster=False,
        refusals={404: "No scenario has this name."},
    ),
)
