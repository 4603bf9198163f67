"""The options of ``mockbroker serve`` about who may connect and do what; reads the certificates.

Names are Kafka's where it has any: super users, allow everyone if no ACL is found.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["security_of", "security_options"]

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--sasl",
        multiple=True,
        metavar="MECHANISM:USER:PASSWORD",
        help="Have clients authenticate; this user may. PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. "
        "Repeatable, also for one user with several mechanisms.",
    ),
    click.option(
        "--tls",
        metavar="CERT[:KEY]",
        help="Serve TLS with this certificate chain and private key, PEM files or one of both.",
    ),
    click.option(
        "--tls-client-ca",
        metavar="FILE",
        help="With --tls: clients must have a certificate that these authorities (PEM) issued, and "
        "are whom it names, unless they authenticate by SASL.",
    ),
    click.option(
        "--authorizer",
        is_flag=True,
        help="Enforce access rules: who is neither a super user nor allowed by a rule may do "
        "nothing. Without it everybody may do everything.",
    ),
    click.option(
        "--super-user",
        "super_users",
        multiple=True,
        metavar="PRINCIPAL",
        help="With --authorizer: one who may do everything, as in User:admin. Repeatable.",
    ),
    click.option(
        "--allow-everyone-if-no-acl-found",
        is_flag=True,
        help="With --authorizer: everybody may do everything with what no rule is about.",
    ),
)


def security_options(command: CommandT) -> CommandT:
    """Give a command these options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def security_of(options: dict[str, Any]) -> dict[str, Any]:
    """What they say, as arguments of ``MockCluster``. Raises ClusterError, click.UsageError."""
    return {
        "sasl": options["sasl"],
        "tls": _tls(options["tls"], options["tls_client_ca"]),
        "authorizer": _authorizer(options),
    }


def _authorizer(options: dict[str, Any]) -> Any:
    from mockbroker.security.authorizer import Authorizer

    open_otherwise = options["allow_everyone_if_no_acl_found"]
    if options["authorizer"]:
        return Authorizer(frozenset(options["super_users"]), open_otherwise)
    if options["super_users"] or open_otherwise:
        name = "--super-user" if options["super_users"] else "--allow-everyone-if-no-acl-found"
        raise click.UsageError(f"{name} says nothing without --authorizer")
    return None


def _tls(files: str | None, client_ca: str | None) -> ssl.SSLContext | None:
    if files is None:
        if client_ca is not None:
            raise click.UsageError("--tls-client-ca says nothing without --tls")
        return None
    certificate, colon, key = files.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Given an empty password OpenSSL refuses an encrypted key; else it asks at the terminal.
        context.load_cert_chain(certificate if colon else files, key if colon else None, "")
    except (OSError, ValueError) as error:  # a broken PEM file is an SSLError, which is an OSError
        raise click.UsageError(f"--tls: {files!r} cannot be used: {error}") from None
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except (OSError, ValueError) as error:
            raise click.UsageError(
                f"--tls-client-ca: {client_ca!r} cannot be used: {error}"
            ) from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context
