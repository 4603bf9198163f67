"""A draft that adds versions and fields to released messages keeps their handlers."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

import kproto
from kproto.client import Connection
from kproto.dialects import Dialect, dialect, load_dialect
from kproto.errors import KprotoError
from kproto.schema.load import schemas_directory
from mockbroker import MockCluster
from mockbroker.apis.common.dialect_handlers import dialect_handlers
from mockbroker.apis.registry import HANDLERS
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.state.settings import ClusterSettings
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.filled_requests import filled_request
from tests.support.full import FULL
from tests.support.requests import request_of
from tests.support.seeds import seed

KAFKA = dialect("kafka")
KEYS = sorted(key for key in HANDLERS if key != 18)  # clients read ApiVersions before anything


def _released(name: str) -> dict[str, Any]:
    text = (schemas_directory() / "kafka" / f"{name}.json").read_text()
    loaded: dict[str, Any] = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    return loaded


def _extend(folder: Path, key: int) -> int:
    """Write both messages of an API with one more version, which has a new field, and return it. A
    tagged field is added to the versions before, too."""
    for cls in (KAFKA.apis[key].request, KAFKA.apis[key].response):
        found = _released(cls.MESSAGE_NAME)
        added = KAFKA.apis[key].valid_versions.highest + 1
        found["validVersions"] = f"{cls.VALID_VERSIONS.lowest}-{added}"
        found["fields"].append(
            {"name": "Draft", "type": "string", "versions": f"{added}+", "default": "new"}
        )
        if cls.FLEXIBLE_VERSIONS and added - 1 in cls.FLEXIBLE_VERSIONS:
            tagged = f"{added - 1}+"
            found["fields"].append(
                {"name": "Tagged", "type": "int32", "versions": tagged, "taggedVersions": tagged,
                 "tag": 9000, "default": "7"}
            )  # fmt: skip
        (folder / f"{cls.MESSAGE_NAME}.json").write_text(json.dumps(found))
    return added


def _asked(codec: Dialect, key: int) -> DirectBroker:
    settings = ClusterSettings(cluster_id="cluster")
    cluster = Cluster(topics=["foo=1,2,3/2,3,1", "bar=1/2"], settings=settings)
    return DirectBroker(cluster, codec=codec, apis={key: codec.apis[key].valid_versions})


def _answer(codec: Dialect, key: int, version: int) -> Any:
    return _asked(codec, key).ask(filled_request(codec.apis[key].request, version), version)


def _frame(codec: Dialect, key: int, version: int) -> bytes | None:
    found = _answer(codec, key, version)
    return None if found is None else found.encode(version)


@pytest.mark.slow
@pytest.mark.requirement("C-08")
def test_released_versions_and_the_new_one_go_to_the_handler(tmp_path: Path) -> None:
    drawn = KEYS if FULL else random.Random(seed()).sample(KEYS, 10)
    for key in drawn:
        folder = tmp_path / str(key)
        folder.mkdir()
        added = _extend(folder, key)
        draft = load_dialect(folder)
        assert key in dialect_handlers(draft), key
        for version in KAFKA.apis[key].valid_versions:
            expected = _frame(KAFKA, key, version)
            if expected == _frame(KAFKA, key, version):  # no id was drawn
                assert _frame(draft, key, version) == expected, (key, version)
        new, newest = _answer(draft, key, added), _answer(KAFKA, key, added - 1)
        assert (new is None) == (newest is None), key
        if new is not None:
            assert new.draft == "new"
            assert new.to_json_value(added).keys() == {*newest.to_json_value(added - 1), "draft"}


def test_a_draft_that_lacks_a_field_has_no_handler(tmp_path: Path) -> None:
    _extend(tmp_path, 3)
    path = tmp_path / "MetadataResponse.json"
    found = json.loads(path.read_text())
    found["fields"] = [each for each in found["fields"] if each["name"] != "ControllerId"]
    path.write_text(json.dumps(found))
    assert 3 not in dialect_handlers(load_dialect(tmp_path))


async def test_a_function_of_the_test_amends_the_new_version_only(tmp_path: Path) -> None:
    added = _extend(tmp_path, 3)
    draft = kproto.load_dialect(tmp_path)
    request: Any = draft.message("MetadataRequest")
    async with MockCluster(topics=["foo=1,2,3"], dialect=draft) as mock:

        @mock.on(3, versions=str(added))
        async def amended(call: Any) -> Any:
            response = await call.response()
            response.draft = f"for {call.client_id}"
            return response

        host, _, port = mock.addresses[1].rpartition(":")
        async with (
            await Connection.open(host, int(port), client_id="me", dialect=draft) as new,
            await Connection.open(host, int(port)) as old,
        ):
            answer: Any = await new.request(request(topics=None))
            assert (answer.draft, answer.topics[0].name) == ("for me", "foo")
            assert (await old.request(request_of("Metadata", topics=None))).topics[0].name == "foo"

            mock.on(3)(lambda call: None)
            answer = await new.request(request(topics=None))
            assert answer.draft == "for me", "None leaves the request to the function before"

            mock.script(3, {"draft": "x", "brokers": [{"nodeId": 5}]})
            answer = await new.request(request(topics=None))
            assert (answer.draft, answer.controller_id, answer.brokers[0].port) == ("x", -1, 0)


async def test_without_a_handler_there_is_no_response_to_amend(tmp_path: Path) -> None:
    for kind in ("Request", "Response"):
        schema = {
            "apiKey": 32100, "type": kind.lower(), "name": f"Greet{kind}", "validVersions": "0",
            "flexibleVersions": "0+", "fields": [],
        }  # fmt: skip
        (tmp_path / f"Greet{kind}.json").write_text(json.dumps(schema))
    draft = load_dialect(tmp_path)
    greet: Any = draft.message("GreetRequest")
    async with MockCluster(1, dialect=draft) as mock:
        mock.on(32100)(lambda call: call.response())
        host, _, port = mock.addresses[1].rpartition(":")
        async with await Connection.open(host, int(port), dialect=draft) as connection:
            with pytest.raises((KprotoError, OSError)):
                await connection.request(greet())
        (error,) = mock.take_handler_errors()
        assert isinstance(error, ClusterError)
        assert str(error) == "the broker has no answer of its own to GREET v0"
