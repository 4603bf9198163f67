"""Whatever was captured, and however badly: every item is told, nothing raises, nothing that a peer
sent reaches the terminal unprintable, and no secret gets out."""

from __future__ import annotations

import base64
import io
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.codec.registry import schema_of
from kproto.framing import encode_frame
from kproto.reference.random_trees import random_tree
from tests.support.full import quickly_drawn
from tests.support.instances import to_instance
from tests.wiredump.show import examples
from tests.wiredump.talk import KAFKA, Piece, Said, chopped, delivered, talks, torn
from wiredump.cli.output import Output
from wiredump.cli.show import Show
from wiredump.model import Exchange, Frame, Item, Place
from wiredump.redact import _CONFIGS, _FIELDS
from wiredump.show.filters import Filters

RANDOMS = st.randoms(use_true_random=True)
FEW = settings(max_examples=max(10, settings().max_examples // 5))
"""The reference codec annotates bytes: an example takes long."""


class Kept(Output):
    """What would have been printed."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def line(self, text) -> None:
        self.lines.append(text.plain)

    def plain(self, text: str) -> None:
        self.lines.append(text)


def shown(items: list[Item], **how: Any) -> list[str]:
    kept = Kept()
    show = Show(kept, Filters(), **how)
    for item in items:
        show.add(item)
    return kept.lines


@FEW
@given(talks(most=3), RANDOMS, st.sampled_from([7, 60, 1000]), st.sampled_from([0.05, 0.5]))
def test_every_item_is_told(said: list[Said], rng: random.Random, most: int, share: float) -> None:
    items = examples.listen(torn(chopped(delivered(said), rng, most), rng, share))
    lines = shown(items)
    assert len(lines) == len(items)
    everything = [*lines, *shown(items, as_hex=True, bodies=True), *shown(items, width=None)]
    assert all(line.isprintable() for line in everything)
    records = [json.loads(line) for line in shown(items, as_json=True, as_hex=True)]
    assert [record["type"] for record in records] == [
        "exchange" if isinstance(item, Exchange) else "anomaly" for item in items
    ]
    assert all(line.isascii() for line in shown(items, as_json=True))


@FEW
@given(talks(most=4))
def test_whole_exchanges_are_told_as_they_were_said(said: list[Said]) -> None:
    records = [
        json.loads(line)
        for line in shown(examples.listen(delivered(said)), as_json=True, secrets=True)
    ]
    assert len(records) == len(said)
    for record, each in zip(records, said, strict=True):
        header, body = KAFKA.decode_request(each.request)
        assert record["api_key"] == each.api_key
        assert record["request"]["body"] == json.loads(body.to_json(each.api_version))
        assert record["request"]["error"] is None
        assert record["client_id"] == header.client_id or each.api_key == 7
        if each.response is not None:
            version = record["response_version"]
            _, answer = KAFKA.decode_response(
                each.response, api_key=each.api_key, api_version=version
            )
            assert record["response"]["body"] == json.loads(answer.to_json(version))


@given(st.binary(max_size=80), st.binary(max_size=80), st.booleans(), st.data())
def test_any_bytes_as_frames(
    request_: bytes, response: bytes, sasl: bool, data: st.DataObject
) -> None:
    """Exchanges that no pairing would make."""
    connection = examples.Connection(0, "a\x1b:1", "b\n:2", 0)

    def frame(direction, raw: bytes) -> Frame:
        raw = encode_frame(raw)[: data.draw(st.integers(0, len(raw) + 4))] if raw else raw
        return Frame(direction, 0, 99, raw, 99 - len(raw), 0, 0, Place(0, 0), sasl)

    exchange = Exchange(
        connection,
        frame("request", request_) if data.draw(st.booleans()) else None,
        frame("response", response) if data.draw(st.booleans()) else None,
        api_key=data.draw(st.sampled_from([-1, 0, 18, 36, 45, 32767])),
        api_version=data.draw(st.integers(-1, 9)),
        client_id=data.draw(st.none() | st.text(max_size=9)),
        dialect=data.draw(st.sampled_from(["kafka", "kip-240", "nobody's"])),
        response_version=data.draw(st.none() | st.integers(-1, 9)),
    )
    for how in ({}, {"as_hex": True, "unfold": True}, {"as_json": True, "as_hex": True}):
        assert all(line.isprintable() for line in shown([exchange], **how))


# ---- secrets ---------------------------------------------------------------------------------

SECRET_MESSAGES = sorted({*_FIELDS, *_CONFIGS})


def planted(message: str, version: int, rng: random.Random, secret: bytes) -> tuple[Any, bool]:
    """A body with the secret in every place that may hold one, and whether there is any."""
    cls = KAFKA.message(message)
    schema = schema_of(cls)
    body = to_instance(cls, random_tree(schema, version, rng, unknown_tags=False, size=40), schema)
    found = False

    def plant(struct: Any) -> None:
        nonlocal found
        names = [name for name in struct.__struct_fields__ if name != "unknown_tags"]
        for name in names:
            value = getattr(struct, name)
            if name in ("auth_bytes", "salt", "salted_password", "hmac", "request_data") or (
                name == "response_data" and value is not None
            ):
                setattr(struct, name, secret)
                found = True
            elif name == "value" and "name" in names and value is not None:
                struct.name = rng.choice(
                    ["ssl.key.password", "sasl.jaas.config", "listener.name.x.ssl.keystore.key"]
                )
                struct.value = secret.decode()
                found = True
            for each in value if isinstance(value, list) else [value]:
                if hasattr(each, "__struct_fields__"):
                    plant(each)

    plant(body)
    return body, found


@pytest.mark.parametrize("message", quickly_drawn("secrets", [*SECRET_MESSAGES], 4))
@FEW
@given(rng=RANDOMS, data=st.data())
def test_no_secret_is_shown(message: str, rng: random.Random, data: st.DataObject) -> None:
    """Whole, cut, or followed by more; in lines, JSON, bodies and bytes."""
    is_request = message.endswith("Request")
    cls = KAFKA.message(message)
    version = rng.choice(list(cls.VALID_VERSIONS))
    secret = b"Zq9" * 5
    body, found = planted(message, version, rng, secret)
    asked = KAFKA.apis[cls.API_KEY or 0].request()
    if is_request:
        frame = examples.asked(body, version, 1).raw
    else:
        frame = examples.answered(body, version, 1).raw
    cut = data.draw(st.sampled_from([len(frame)] * 3 + [rng.randint(12, len(frame))]))
    pieces = [Piece(is_request, frame[:cut])]
    if cut < len(frame):
        pieces.append(Piece(is_request, b"", len(frame) - cut))
    if not is_request:
        pieces.insert(0, Piece(True, _request_frame(cls.API_KEY, version, asked)))
    items = examples.listen(pieces)
    looks = {
        secret.decode(),
        base64.b64encode(secret).decode().rstrip("="),
        secret.hex(" ")[:20],
        secret.hex(),
    }
    for how in (
        {"bodies": True, "as_hex": True, "unfold": True},
        {"as_json": True, "as_hex": True},
    ):
        text = "\n".join(shown(items, width=None, **how))
        assert not [look for look in looks if look in text]
    if found and cut == len(frame):
        text = "\n".join(shown(items, width=None, secrets=True, as_json=True))
        assert any(look in text for look in looks)


def _request_frame(api_key: int, version: int, body: Any) -> bytes:
    """A request of the version, whatever its body can carry there."""
    schema = schema_of(type(body))
    tree = random_tree(schema, version, random.Random(1), unknown_tags=False)
    return examples.asked(to_instance(type(body), tree, schema), version, 1).raw


@pytest.mark.parametrize("pieces", [examples.PLAIN, examples.BARE])
def test_no_token_is_shown(pieces: list[Piece]) -> None:
    items = examples.listen(pieces)
    for how in ({}, {"bodies": True}, {"as_hex": True, "unfold": True}, {"as_json": True}):
        text = "\n".join(shown(items, **how))
        assert examples.PASSWORD.decode() not in text
        assert examples.PASSWORD.hex(" ")[:30] not in text
        assert base64.b64encode(b"\0user\0" + examples.PASSWORD).decode() not in text
    assert examples.PASSWORD.hex(" ")[:15] in "\n".join(
        shown(items, as_hex=True, unfold=True, secrets=True)
    )


def test_output_is_flushed_where_somebody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting(io.StringIO):
        flushes = 0

        def flush(self) -> None:
            self.flushes += 1

    for flush in (True, False):
        out = Counting()
        monkeypatch.setattr("sys.stdout", out)
        output = Output(flush=flush)
        before = out.flushes
        output.plain("x")
        assert (out.flushes > before) is flush
        monkeypatch.undo()
