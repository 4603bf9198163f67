"""Nothing that looks like a secret is left out of the tables; that none is shown is tested in
``show/test_any_traffic.py``."""

from __future__ import annotations

import re

import pytest

from mockbroker.simulation.configs.broker_facts import BROKER_FACTS
from tests.support.schemas import released
from wiredump.redact import _CONFIGS, _FIELDS, REDACTED, is_secret_config, redacted

SCHEMAS = [schema for schema in released().values() if schema.type in ("request", "response")]
_LOOKS_SECRET = re.compile(r"auth_?bytes|hmac|password|^salt$|secret|credential$|_data$")
_HARMLESS = {("DescribeGroupsResponse", "protocol_data")}
"""The name of what a group agreed on."""


def test_every_field_that_looks_like_a_secret_is_one() -> None:
    found = {
        (schema.name, field.python_name)
        for schema in SCHEMAS
        for struct in schema.structs
        for field in struct.fields
        if field.type.kind in ("bytes", "string") and _LOOKS_SECRET.search(field.python_name)
    }
    listed = {(message, name.lower()) for message, names in _FIELDS.items() for name in names}
    assert {(message, name.replace("_", "")) for message, name in found - _HARMLESS} == listed


def test_every_message_with_configs_is_known() -> None:
    found = {
        schema.name
        for schema in SCHEMAS
        for struct in schema.structs
        if {"name", "value"} <= {field.python_name for field in struct.fields}
        and any(word in struct.name for word in ("Config", "Synonym"))
    }
    assert found == _CONFIGS


def test_kafkas_own_passwords_are_secret_by_their_names() -> None:
    passwords = {name for name, kind, *_ in BROKER_FACTS if kind == "PASSWORD"}
    assert passwords
    assert all(is_secret_config(name) for name in passwords)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("sasl.jaas.config", True),
        ("listener.name.internal.scram-sha-256.sasl.jaas.config", True),
        ("ssl.keystore.key", True),
        ("ssl.truststore.password", True),
        ("delegation.token.secret.key", True),
        ("delegation.token.master.key", True),
        ("sasl.oauthbearer.client.credentials.client.secret", True),
        ("plugin.token", True),
        ("cleanup.policy", False),
        ("ssl.protocol", False),
        ("sasl.mechanism", False),
        ("delegation.token.max.lifetime.ms", False),
        ("", False),
        (None, False),
    ],
)
def test_by_name(name: str | None, secret: bool) -> None:
    assert is_secret_config(name) is secret


def test_what_is_no_secret_stays() -> None:
    body = {"configs": [{"name": "ssl.key.password", "value": None}, {"name": "x", "value": "y"}]}
    assert redacted("AlterConfigsRequest", body) == body
    assert redacted("MetadataRequest", body) is body
    told = {"name": "mine", "isSensitive": True, "value": "v", "synonyms": [{"value": "w"}]}
    assert redacted("DescribeConfigsResponse", {"results": [told]}) == {
        "results": [{**told, "value": REDACTED, "synonyms": [{"value": REDACTED}]}]
    }
    assert redacted("SaslAuthenticateRequest", {"authBytes": ""}) == {"authBytes": ""}
