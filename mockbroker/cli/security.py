"""The options of ``mockbroker serve`` for TLS and authorization.

Names follow Kafka's configs: super users, allow everyone if no ACL found.
"""

from __future__ import annotations

import ssl
from typing import Any, Final

import click

from mockbroker.options.certificates import pem_problem

__all__ = ["SECURITY_OPTIONS", "security_of", "server_tls"]

_KEY: Final = "in the same file or in one after a colon"

SECURITY_OPTIONS = (
    click.option(
        "--tls",
        metavar="CERT[:KEY]",
        help="Serve TLS with this certificate chain and private key, in one PEM file or two.",
    ),
    click.option(
        "--tls-client-ca",
        metavar="FILE",
        help="With --tls: require client certificates of these authorities (PEM). The certificate "
        "names the principal, unless the client authenticates with SASL.",
    ),
    click.option(
        "--authorizer",
        is_flag=True,
        help="Enforce access rules: deny everything to principals that are neither super users nor "
        "allowed by a rule. Default: everything is allowed.",
    ),
    click.option(
        "--super-user",
        "super_users",
        multiple=True,
        metavar="PRINCIPAL",
        help="With --authorizer: allow this principal everything, such as User:admin. Repeatable.",
    ),
    click.option(
        "--allow-everyone-if-no-acl-found",
        is_flag=True,
        help="With --authorizer: allow everything on resources without a rule.",
    ),
)


def security_of(options: dict[str, Any]) -> dict[str, Any]:
    """The options as fields of ``ClusterOptions``. Raises ClusterError or click.UsageError."""
    return {
        "tls": server_tls(options["tls"], options["tls_client_ca"]),
        "authorizer": _authorizer(options),
    }


def _authorizer(options: dict[str, Any]) -> Any:
    from mockbroker.simulation.security.authorizer import Authorizer

    open_otherwise = options["allow_everyone_if_no_acl_found"]
    if options["authorizer"]:
        return Authorizer(frozenset(options["super_users"]), open_otherwise)
    if options["super_users"] or open_otherwise:
        name = "--super-user" if options["super_users"] else "--allow-everyone-if-no-acl-found"
        raise click.UsageError(f"{name} needs --authorizer")
    return None


def server_tls(files: str | None, client_ca: str | None) -> ssl.SSLContext | None:
    """The context of a listener; None without TLS. Raises click.UsageError."""
    if files is None:
        if client_ca is not None:
            raise click.UsageError("--tls-client-ca needs --tls")
        return None
    certificate, colon, key = files.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # With an empty password OpenSSL refuses an encrypted key; without, it prompts for one.
        context.load_cert_chain(certificate if colon else files, key if colon else None, "")
    except (OSError, ValueError) as error:  # a broken PEM file is an SSLError, which is an OSError
        raise click.UsageError(
            f"--tls: {files!r} cannot be used: {pem_problem(error, key=_KEY)}"
        ) from None
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except (OSError, ValueError) as error:
            raise click.UsageError(
                f"--tls-client-ca: {client_ca!r} cannot be used: {pem_problem(error, key=_KEY)}"
            ) from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context
