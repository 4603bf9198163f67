"""Every message at every version, from the schemas: the dissector's fields are our own, by place,
name and value."""

from pathlib import Path

import pytest

from kproto import dialect
from kproto.annotate import FrameField, request_fields, response_fields
from kproto.codec.registry import schema_of
from kproto.dialects import Api, Dialect
from kproto.reference.random_trees import random_tree
from kproto.wireshark.generate import filter_names
from tests.support import seeds
from tests.support.full import FULL
from tests.support.instances import to_instance
from tests.wireshark.conftest import DRAFTS
from tests.wireshark.dissected import PORT, Exchanged, differences, dissected, write_capture

pytestmark = pytest.mark.slow

FILTERS = filter_names(dialect("kafka"), map(dialect, DRAFTS))
EACH = 4 if FULL else 1
CONTROLLED_SHUTDOWN, SASL_HANDSHAKE, API_VERSIONS = 7, 17, 18


def exchange(names: Dialect, api: Api, version: int, correlation_id: int) -> Exchanged:
    rng = seeds.generator(f"{names.name} {api.api_key} {version} {correlation_id}")
    request, response = (
        to_instance(cls, random_tree(schema_of(cls), version, rng, size=120), schema_of(cls))
        for cls in (api.request, api.response)
    )
    if api.api_key == API_VERSIONS:
        response.error_code = 0  # 35 would be read as version 0
    return Exchanged(
        names.encode_request(
            request, api_version=version, correlation_id=correlation_id, client_id="a client",
            unknown_tags=None,
        ),
        names.encode_response(response, api_version=version, correlation_id=correlation_id),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["kafka", *DRAFTS])
def test_every_version(name: str, script: Path, tmp_path: Path) -> None:
    names = dialect(name)
    cases = [
        (api, version)
        for key in (names.apis if name == "kafka" else names.own_requests)
        for api in [names.apis[key]]
        for version in api.valid_versions
        if (key, version) != (SASL_HANDSHAKE, 0)  # tokens follow it
        for _ in range(EACH)
    ]
    exchanges = [exchange(names, *case, number) for number, case in enumerate(cases)]
    capture = tmp_path / "every.pcap"
    write_capture(capture, exchanges, segment=1400)
    pdus = dissected(capture, script, (PORT,), "-o", f"kproto.dialect:{name}")
    assert len(pdus) == 2 * len(exchanges)
    wrong = []
    compared = 0
    for ((api, version), frames), request, response in zip(
        zip(cases, exchanges, strict=True), pdus[::2], pdus[1::2], strict=True
    ):
        rows: list[list[FrameField]] = [
            request_fields(names, frames.request),
            response_fields(names, frames.response, api_key=api.api_key, api_version=version),
        ]
        for direction, of_frame, pdu in zip(
            ("request", "response"), rows, (request, response), strict=True
        ):
            compared += len(of_frame)
            found = differences(of_frame, pdu, FILTERS)
            if found:
                wrong.append(f"{api.name} v{version} {direction}: {found[0]} ({len(found)} in all)")
    assert not wrong, "\n".join(wrong[:20])
    assert compared > 5 * len(cases)
