"""Real traffic of every client, read: all of it, nothing amiss that ``expected`` does not list.

What each capture is, README.md beside them says.
"""

import base64
import io
from collections import Counter, defaultdict

import dpkt
import pytest
from click.testing import CliRunner

from kproto.dialects import dialect
from kproto.records import Compression, RecordBatches
from tests.captures.clients.common import CODECS, RECORDS, value
from tests.captures.expected import ANOMALIES, PROBLEMS, SOFTWARE, UNKNOWN
from tests.captures.reading import FOLDER, NAMES, file_of, manifest, read
from tests.real.secured_kafka import password
from tests.support.full import quickly_drawn
from wiredump import bodies
from wiredump.cli import cli
from wiredump.model import Anomaly, Exchange
from wiredump.readers import Capture, Streams
from wiredump.readers.compressed import inflater_for
from wiredump.sources.captures import CaptureItems

KAFKA = dialect("kafka")
LARGEST = 2 << 20
"""Bytes of all captures together."""

captures = pytest.mark.parametrize("name", quickly_drawn("captures", NAMES, 3))


def uncompressed(name: str) -> bytes:
    data = file_of(name).read_bytes()
    inflater = inflater_for(data[:4])
    assert inflater is not None
    return b"".join(inflater.feed(data))


def test_all_are_here_and_small():
    assert {file.name for file in FOLDER.glob("*.zst")} == {file_of(name).name for name in NAMES}
    assert sum(file_of(name).stat().st_size for name in NAMES) < LARGEST


@captures
def test_the_readme_says_what_it_is(name: str):
    (line,) = (
        line for line in (FOLDER / "README.md").read_text().splitlines() if f"`{name}`" in line
    )
    packets = sum(1 for _ in dpkt.pcap.Reader(io.BytesIO(uncompressed(name))))
    assert f"| {packets} |" in line
    assert manifest()[name]["broker"] in line


@captures
def test_only_loopback_addresses_and_the_brokers_ports(name: str):
    ports = set(manifest()[name]["ports"])
    for _, packet in dpkt.pcap.Reader(io.BytesIO(uncompressed(name))):
        ip = dpkt.ethernet.Ethernet(packet).data
        assert (ip.src, ip.dst) == (b"\x7f\0\0\1", b"\x7f\0\0\1")
        assert ports & {ip.data.sport, ip.data.dport}
        assert b"/tmp/" not in packet


@captures
def test_every_byte_is_accounted_for(name: str):
    """By another library's count of them."""
    account = read(name).account
    payload = sum(
        len(dpkt.ethernet.Ethernet(packet).data.data.data)
        for _, packet in dpkt.pcap.Reader(io.BytesIO(uncompressed(name)))
    )
    assert account["payload"] == payload
    assert account["frames"] + account["retransmitted"] + account["anomalies"] == payload
    assert account["missing"] == 0


@captures
def test_nothing_is_amiss_but_what_is_listed(name: str):
    amiss: Counter[tuple[str, str, str]] = Counter()
    before = None
    for item in read(name).items:
        if isinstance(item, Anomaly):
            # What was not answered comes right before its anomaly.
            api = bodies.read(before).api if item.kind == "unanswered" and before else ""
            amiss[item.kind, item.reason, api] += 1
        else:
            before = item
    assert amiss == ANOMALIES[name]


@pytest.mark.requirement("C-10")
@captures
def test_every_exchange_decodes_whole_and_encodes_to_the_same_bytes(name: str):
    problems: Counter[tuple[str, str, str]] = Counter()
    frames = 0
    for exchange in read(name).exchanges:
        found = bodies.read(exchange)
        for direction, side in (("request", found.request), ("response", found.response)):
            if side is not None and side.problem:
                problems[found.api, direction, side.problem] += 1
            elif side is not None:
                assert again(exchange, direction) == getattr(exchange, direction).raw
                frames += 1
    assert problems == PROBLEMS.get(name, {})
    assert frames > 200


def again(exchange: Exchange, direction: str) -> bytes:
    """Decoded, and encoded anew."""
    if direction == "request":
        assert exchange.request is not None
        if exchange.request.sasl:
            return exchange.request.raw
        header, body = KAFKA.decode_request(exchange.request.raw)
        return KAFKA.encode_request(
            body,
            api_version=exchange.api_version,
            correlation_id=header.correlation_id,
            client_id=header.client_id,
        )
    assert exchange.response is not None
    assert exchange.response_version is not None
    if exchange.response.sasl:
        return exchange.response.raw
    version = exchange.response_version
    answer = KAFKA.decode_response(
        exchange.response.raw, api_key=exchange.api_key, api_version=version
    )
    return KAFKA.encode_response(
        answer[1], api_version=version, correlation_id=answer[0].correlation_id
    )


@captures
def test_who_is_who(name: str):
    """By what a connection's client said of itself; brokers among themselves are not asked."""
    said = defaultdict(set)
    protocols = Counter(each.protocol for each in read(name).connections.values())
    for connection in read(name).connections.values():
        client = short(connection.client_id)
        if client in SOFTWARE:
            software = connection.software
            said[client].add(f"{software.name} {software.version}" if software else "")
    programs = {short(each["client"]) for each in manifest()[name]["programs"]}
    assert {short(each) for each in said} == programs
    for client, versions in said.items():
        assert versions <= SOFTWARE[client], client
    if not name.endswith("brokers"):
        assert protocols["unknown"] == UNKNOWN.get(name, 0)


def short(client: str | None) -> str:
    """``demo-java-admin`` is java, ``@platformatic/kafka`` platformatic."""
    text = (client or "").removeprefix("demo-").removeprefix("@").removesuffix("/kafka")
    text = text.removesuffix("-3.9").removesuffix("-admin")
    return {"confluent-kafka": "confluent", "kafka-clients": "java"}.get(text, text)


@captures
@pytest.mark.parametrize("read_size", [61, 4096])
def test_however_it_is_read(name: str, read_size: int):
    """Pieces of the file, compressed as it is, of any size: the same items."""
    streams, items = Streams(), CaptureItems()
    with Capture(file_of(name), read_size=read_size) as capture:
        found = list(items.read(streams.read(capture)))
    items.account.check()
    assert found == read(name).items
    assert items.connections == read(name).connections


PRODUCERS: dict[str, set[str]] = {
    "confluent": set(CODECS),
    "kafka-python": {"none", "gzip", "lz4"},  # the others take libraries it does not bring
    "aiokafka": set(CODECS),
    "java": set(CODECS),
    "franz-go": set(CODECS),
    "sarama": set(CODECS),
    "kafkajs": {"none", "gzip"},
    "platformatic": {"none", "gzip", "snappy", "lz4"},  # zstd takes a newer Node.js
}


@pytest.mark.parametrize("release", ["2.4.1", "3.9.2", "4.4.0"])
def test_what_was_produced_is_what_the_programs_say(release: str):
    """Every client by every codec, checksums checked, and each record's value."""
    produced: dict[tuple[str, Compression], list[bytes]] = defaultdict(list)
    exchanges = [
        each for part in (1, 2) for each in read(f"kafka-{release}-everyday-{part}").exchanges
    ]
    for exchange in exchanges:
        if exchange.api_key == 0 and exchange.request is not None:
            if bodies.read(exchange).errors:
                continue  # no leader yet: the client sends it again
            _, body = KAFKA.decode_request(exchange.request.raw)
            for topic in body.topic_data:
                for partition in topic.partition_data:
                    for batch in RecordBatches(partition.records):
                        key = exchange.client_id or "", batch.compression
                        if not batch.is_transactional:
                            produced[key] += [record.value or b"" for record in batch]
    codecs = defaultdict(set)
    for (client, codec), values in produced.items():
        times, rest = divmod(len(values), RECORDS)
        assert rest == 0
        assert sorted(values) == sorted([value(n).encode() for n in range(RECORDS)] * times)
        codecs[client].add(codec.name.lower())
    expected = dict(PRODUCERS)
    if release == "2.4.1":
        del expected["platformatic"]  # it has no version of CreateTopics that this broker has
    assert codecs == expected


@pytest.mark.slow
def test_secrets_are_redacted():
    """In none of the ways that ``wiredump show`` has, unless it is asked for them."""
    file = str(file_of("kafka-4.4.0-secured"))
    token = f"\0admin\0{password('admin')}".encode()
    secrets = {password("admin").encode(), b"not-the-password", b"throw-away"}
    shown = {base64.b64encode(token).decode(), *(secret.decode() for secret in secrets)}
    for exchange in read("kafka-4.4.0-secured").exchanges:
        if exchange.api_key == 51 and exchange.request is not None:
            _, body = KAFKA.decode_request(exchange.request.raw)
            shown |= {base64.b64encode(row.salted_password).decode() for row in body.upsertions}
    assert len(shown) > 5  # Java salts anew for each mechanism it came by
    for options in (["--json"], ["--bodies"], ["--hex"], ["--hex", "--all"]):
        done = CliRunner().invoke(cli, ["show", *options, file])
        assert done.exit_code == 0
        assert "redacted" in done.output or "hidden" in done.output
        assert not [secret for secret in shown if secret in done.output]
        assert token.hex() not in done.output.replace(" ", "")
    told = CliRunner().invoke(cli, ["show", "--json", "--secrets", file]).output
    assert base64.b64encode(token).decode() in told


def test_versions_are_those_of_this_decade():
    """The captures are worth little where they have few of the protocol's messages."""
    pairs = {
        (each.api_key, each.api_version) for name in NAMES for each in read(name).exchanges
    }  # fmt: skip
    assert len(pairs) >= 120
    assert len({key for key, _ in pairs}) >= 45
