"""The rows of a frame: leaves tile it exactly, paths are unique, values are the message's own."""

import pytest

import kproto
from kproto.annotate import FrameField, request_fields, response_fields
from kproto.errors import DecodeError
from kproto.reference.random_trees import random_tree
from tests.support import seeds
from tests.support.full import quickly_drawn
from tests.support.instances import to_instance
from tests.support.schemas import of_dialect


def check(frame: bytes, rows: list[FrameField]) -> None:
    at = 0
    for row in rows:
        if row.leaf:
            assert row.offset == at
            at += row.length
    assert at == len(frame)
    assert len({row.path for row in rows}) == len(rows)


@pytest.mark.parametrize("name", ["kafka", "kip-455-new", "kip-240"])
def test_leaves_tile_the_frame(name: str) -> None:
    dialect = kproto.dialect(name)
    schemas = list(of_dialect(name).values())
    for schema in quickly_drawn(f"annotate:{name}", schemas, 40):
        if schema.type not in ("request", "response") or schema.api_key is None:
            continue
        for version in {schema.valid_versions.lowest, schema.valid_versions.highest}:
            rng = seeds.generator(f"annotate:{schema.name}:{version}")
            tree = random_tree(schema, version, rng, size=40)
            body = to_instance(dialect.message(schema.name), tree, schema)
            if schema.type == "request":
                frame = dialect.encode_request(
                    body, api_version=version, correlation_id=1, client_id="c"
                )
                check(frame, request_fields(dialect, memoryview(frame)))
            else:
                frame = dialect.encode_response(body, api_version=version, correlation_id=1)
                rows = response_fields(dialect, frame, api_key=schema.api_key, api_version=version)
                check(frame, rows)


def test_a_bad_frame_raises_as_decoding_does() -> None:
    with pytest.raises(DecodeError):
        request_fields(kproto.dialect("kafka"), b"\0\0\0\1x")
