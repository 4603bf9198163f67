"""``ClusterOptions`` as JSON: the body of ``POST /clusters``.

Options that are Python objects or that only a Python caller can use have no declaration:
``journal``, ``tls``, ``strict_faults``.
"""

from __future__ import annotations

from typing import Any, Final

from kproto.dialects import DIALECTS
from mockbroker.control.routes import Member
from mockbroker.control.schemas import array_of, ref
from mockbroker.faults import faults_of
from mockbroker.options import ClusterOptions
from mockbroker.simulation.state.option_declarations import options_of
from mockbroker.simulation.state.option_types import choice

__all__ = ["CLUSTER_OPTIONS"]

_TYPES: Final = {"dialect": choice(*DIALECTS)}
"""Over HTTP, a dialect has only a name: a folder would be one on the server."""


def _rules(_name: str, value: Any) -> Any:
    return faults_of(value)


CLUSTER_OPTIONS: Final = (
    *(
        Member(
            each.name, dict(kind.schema), kind.from_json, each.json_help or each.help,
            required=False,
        )
        for each in options_of(ClusterOptions)
        for kind in [_TYPES.get(each.name, each.type)]
    ),
    Member(
        "faults", array_of(ref("Fault")), _rules, "Fault rules to add before the cluster starts.",
        required=False,
    ),
)  # fmt: skip
