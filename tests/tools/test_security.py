"""``--command-config`` against brokers that want TLS and SASL: what is said there is done."""

from pathlib import Path

import pytest

from tests.client.test_sasl import ENABLED, PEM, secured, seen_keys, tls_server
from tests.tools.commands import Outcome, admin

LOGIN = "org.apache.kafka.common.security"


def properties(mechanism: str, password: str, **more: str) -> str:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    lines = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{LOGIN}.{module} required username="alice" password="{password}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(PEM),
        "default.api.timeout.ms": "20000",
        **more,
    }
    return "\n".join(f"{name}={value}" for name, value in lines.items() if value)


async def list_reassignments(text: str, folder: Path) -> tuple[Outcome, list[int]]:
    path = folder / "client.properties"
    path.write_text(text)
    async with secured(tls_server()) as mock:
        outcome = await admin(
            "reassign-partitions",
            "--list",
            f"--bootstrap-server={mock.bootstrap}",
            f"--command-config={path}",
        )
    return outcome, seen_keys(mock)


@pytest.mark.parametrize("mechanism", ENABLED)
async def test_the_right_credentials(mechanism, tmp_path):
    outcome, keys = await list_reassignments(properties(mechanism, "pencil"), tmp_path)
    assert outcome == (0, "No partition reassignments found.\n", "")
    assert 36 in keys


@pytest.mark.parametrize("mechanism", ENABLED)
async def test_the_wrong_password(mechanism, tmp_path):
    outcome, keys = await list_reassignments(properties(mechanism, "pen"), tmp_path)
    assert outcome.code == 1
    assert outcome.err.startswith("kproto: Authentication failed")
    assert outcome.out.startswith(
        "Error: org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed"
    )
    assert 46 not in keys


async def test_a_certificate_nobody_vouches_for(tmp_path):
    trusting = {"ssl.truststore.location": "", "ssl.truststore.type": ""}
    outcome, keys = await list_reassignments(properties("PLAIN", "pencil", **trusting), tmp_path)
    assert (outcome.code, outcome.err.count("\n"), keys) == (1, 1, [])
    assert "certificate verify failed" in outcome.err
