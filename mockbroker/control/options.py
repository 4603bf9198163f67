"""``ClusterOptions`` as JSON: the body of ``POST /clusters``.

``journal`` is a Python object and has no declaration. Certificates are PEM texts here, since files
would be those of the server's machine.
"""

from __future__ import annotations

import ssl
from typing import Any, Final

from kproto.dialects import DIALECTS
from mockbroker.control.routes import TEXT, Member
from mockbroker.control.schemas import array_of, map_of, ref
from mockbroker.errors import ClusterError
from mockbroker.faults import faults_of
from mockbroker.options import ClusterOptions
from mockbroker.options.certificates import load_pem, pem_problem
from mockbroker.simulation.state.option_declarations import options_of
from mockbroker.simulation.state.option_types import choice, object_of, text_of

__all__ = ["CLUSTER_OPTIONS"]

_TYPES: Final = {"dialect": choice(*DIALECTS)}
"""Over HTTP, a dialect has only a name: a folder would be one on the server."""


def _rules(_name: str, value: Any) -> Any:
    return faults_of(value)


def _labels(name: str, value: Any) -> dict[str, str]:
    return object_of(name, value, text_of)


_KEY: Final = 'in "key", without a password'
_TLS_TEXTS: Final = ("certificate", "key", "client_ca")


def _tls(name: str, value: Any) -> ssl.SSLContext:
    given = object_of(name, value, text_of)
    if not {"certificate", "key"} <= given.keys() <= set(_TLS_TEXTS):
        raise ClusterError(f'"{name}" must be an object with {", ".join(_TLS_TEXTS)} (optional)')
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        load_pem(context, f"{given['certificate']}\n{given['key']}\n".encode())
    except (OSError, ValueError) as error:
        raise ClusterError(f'"{name}" cannot be used: {pem_problem(error, key=_KEY)}') from None
    if "client_ca" in given:
        try:
            context.load_verify_locations(cadata=given["client_ca"])
        except (OSError, ValueError) as error:
            raise ClusterError(
                f'"{name}.client_ca" cannot be used: {pem_problem(error, key=_KEY)}'
            ) from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


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
    Member(
        "labels", {**map_of(TEXT), "examples": [{"test": "TestProduce"}]}, _labels,
        "Whose cluster it is, such as the name of a test; `GET /clusters` shows them.",
        required=False,
    ),
    Member(
        "tls", ref("TlsFiles"), _tls, "Serve TLS on every listener.", required=False
    ),
)  # fmt: skip
