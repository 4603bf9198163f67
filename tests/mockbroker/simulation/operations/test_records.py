"""Records of a running cluster: the methods of ``MockCluster``, the routes, the command line."""

import json

import pytest

from kproto.records import Compression, Record, build_batch
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.running.fixture import MockKafka
from mockbroker.simulation.log.producing.partitioner import partition_of_key
from tests.mockbroker.control.test_command_line import ctl, run_here, serving
from tests.mockbroker.control.test_control import controlled
from tests.mockbroker.wire import connect


async def test_records_are_produced_and_read_without_a_client() -> None:
    async with MockCluster(topics=["foo:3:1"], clock="manual") as mock:
        first = mock.produce("foo", key="k", value="hello", headers={"a": b"\x00"}, timestamp=5)
        second = mock.produce("foo", value=b"\xff", partition=1, codec="gzip")
        assert (first.partition, first.offset) == (partition_of_key(b"k", 3), 0)
        assert (first.key, first.value, first.headers) == (b"k", b"hello", (("a", b"\x00"),))
        assert (second.partition, second.timestamp) == (1, 0)
        assert mock.records("foo") == sorted([first, second], key=lambda each: each.partition)
        assert mock.records("foo", 1) == [second]


async def test_committed_records_end_at_the_high_watermark() -> None:
    async with MockCluster(topics=["foo=1,2"]) as mock:
        mock.produce("foo", value="one")
        mock.hold_replication("foo-0")
        mock.produce("foo", value="two")
        assert [each.value for each in mock.records("foo")] == [b"one", b"two"]
        assert [each.value for each in mock.records("foo", committed=True)] == [b"one"]


def test_committed_records_have_no_aborted_transaction(
    mock_kafka_factory: type[MockKafka],
) -> None:
    """What a consumer with read_committed gets: nothing of an aborted or an open transaction."""
    mock = mock_kafka_factory(topics=["foo:1:1"])
    for producer_id, ends in enumerate(["abort", "commit", "", "abort"], start=7):
        batch = {
            "records": [{"value": f"{ends}{number}"} for number in range(2)],
            "producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0,
            "transactional": True,
        }  # fmt: skip
        mock.append("foo-0", json.dumps(batch))
        mock.produce("foo", value=f"plain {producer_id}")
        if ends:
            mock.write_marker("foo-0", producer_id, ends)
    values = [each.value for each in mock.records("foo", committed=True)]
    assert values == [b"plain 7", b"commit0", b"commit1", b"plain 8"]
    assert len(mock.records("foo")) == 12
    mock.write_marker("foo-0", 9, "commit")
    assert [each.value for each in mock.records("foo", committed=True)] == [
        *values, b"0", b"1", b"plain 9", b"plain 10",
    ]  # fmt: skip
    mock.assert_produced("foo", value="abort0", times=2)
    mock.assert_produced("foo", value="abort0", committed=True, times=0)
    with pytest.raises(AssertionError, match=r"foo has 0 committed records with value 'abort1', "):
        mock.assert_produced("foo", value="abort1", committed=True)


def test_a_config_of_a_topic(mock_kafka_factory: type[MockKafka]) -> None:
    """For a log that is compacted, without a client."""
    mock = mock_kafka_factory(topics=["foo:1:1"])
    with pytest.raises(ClusterError, match=r"set-topic-config foo cleanup\.policy compact changes"):
        mock.compact("foo-0")
    mock.set_topic_config("foo", "cleanup.policy", "compact")
    for value in ("old", "new"):
        mock.produce("foo", key="k", value=value)
    mock.roll_segment("foo-0")
    mock.compact("foo-0")
    assert [each.value for each in mock.records("foo")] == [b"new"]
    mock.set_topic_config("foo", "cleanup.policy")
    with pytest.raises(ClusterError, match=r"the cleanup\.policy of the topic is delete"):
        mock.compact("foo-0")
    for name, value, problem in (
        ("cleanup.police", "compact", "Unknown topic config name: cleanup.police"),
        ("cleanup.policy", "keep", "Invalid value keep for configuration cleanup.policy"),
    ):
        with pytest.raises(ClusterError, match=problem):
            mock.set_topic_config("foo", name, value)
    with pytest.raises(ClusterError, match="The topic 'bar' does not exist"):
        mock.set_topic_config("bar", "cleanup.policy", "compact")


async def test_what_does_not_exist_is_an_error() -> None:
    async with MockCluster(topics=["foo:1:1"]) as mock:
        for call, problem in (
            (lambda: mock.produce("bar", value="x"), "there is no topic 'bar'"),
            (lambda: mock.records("bar"), "there is no topic 'bar'"),
            (lambda: mock.produce("foo", partition=1), "foo-1"),
            (lambda: mock.produce("foo", codec="zip"), "codec 'zip' is none of none, gzip"),
        ):
            with pytest.raises(ClusterError, match=problem):
                call()


def test_a_failed_assertion_lists_the_records(mock_kafka_factory: type[MockKafka]) -> None:
    mock = mock_kafka_factory(topics=["foo:1:1"])
    with pytest.raises(AssertionError, match=r"foo has 0 records, not at least one.*\n  none"):
        mock.assert_produced("foo")
    for value in ("one", "two", "two"):
        mock.produce("foo", key="k", value=value)
    assert [each.offset for each in mock.assert_produced("foo", value="two", times=2)] == [1, 2]
    assert mock.assert_produced("foo", key=b"k", partition=0)
    with pytest.raises(AssertionError) as failed:
        mock.assert_produced("foo", value="two", times=1)
    assert str(failed.value).splitlines() == [
        "foo has 2 records with value 'two', not 1. Its records:",
        "  foo-0 offset 0, key b'k', value b'one'",
        "  foo-0 offset 1, key b'k', value b'two'",
        "  foo-0 offset 2, key b'k', value b'two'",
    ]


async def test_logs_are_bounded_by_the_option() -> None:
    async with MockCluster(topics=["foo:1:1"], log_bytes=2000) as mock:
        for number in range(40):
            mock.produce("foo", value=f"{number:>50}")
        log = mock.cluster.logs.log(("foo", 0))
        assert log.storage.size <= 2000
        assert log.start_offset > 0
        assert any(each.change.__class__.__name__ == "LogStartMoved" for each in mock.cluster.log)
    with pytest.raises(ClusterError, match='"log_bytes" is 0'):
        MockCluster(log_bytes=0)


@pytest.mark.requirement("DP-CTL-50", "DP-CTL-51")
async def test_the_control_port_shows_logs_and_records() -> None:
    async with controlled(clock="manual") as (_, client):
        await client.step("append", partition="foo-0", records="one")
        await client.step("hold-replication", partition="foo-0", broker=2)
        await client.step("append", partition="foo-0", records={"key": "k", "value": {"hex": "ff"}})
        status, logs = await client.get("/logs")
        assert (status, list(logs)) == (200, ["foo-0"])
        assert logs["foo-0"]["replicas"] == {
            "1": {"end_offset": 2, "in_sync": True, "held": False},
            "2": {"end_offset": 1, "in_sync": True, "held": True},
            "3": {"end_offset": 2, "in_sync": True, "held": False},
        }
        _, log = await client.get("/logs/foo-0")
        assert (log["start_offset"], log["high_watermark"], log["end_offset"]) == (0, 1, 2)
        assert (log["epochs"], log["batches"]) == ([{"epoch": 0, "start_offset": 0}], 2)
        _, found = await client.get("/logs/foo-0/records?from=1")
        assert found["records"] == [
            {"topic": "foo", "partition": 0, "offset": 1, "timestamp": 0, "key": "k",
             "value": {"hex": "ff"}, "headers": []}
        ]  # fmt: skip
        _, found = await client.get("/logs/foo-0/records?max=1&values=hex")
        assert [each["value"] for each in found["records"]] == [{"hex": b"one".hex()}]
        for path, code in (("/logs/foo-1", 404), ("/logs/bar-0/records", 404), ("/logs/x", 400)):
            assert (await client.get(path))[0] == code, path


@pytest.mark.requirement("DP-CTL-57")
async def test_the_journal_shows_batches_decoded() -> None:
    async with controlled(clock="manual") as (mock, client), connect(mock) as wire:
        batch = build_batch(
            [Record(timestamp=0, key=b"k", value=b"one", headers=(("h", b"x"),)),
             Record(timestamp=0, value=b"\xff")],
            compression=Compression.GZIP, producer_id=7, producer_epoch=0, base_sequence=0,
        )  # fmt: skip
        part = {"index": 0, "records": batch}
        topic = {"name": "foo", "partition_data": [part]}
        await wire.ask("Produce", 9, acks=1, timeout_ms=1, topic_data=[topic])
        _, (entry,) = await client.get("/journal?api=Produce&direction=request")
        assert entry["body"]["topicData"][0]["partitionData"][0]["records"] == [
            {"offsets": "0-1", "codec": "gzip", "producer": "7/0", "sequence": 0, "records": [
                {"key": "k", "value": "one", "headers": [["h", "x"]]}, {"value": "0xff"}]}
        ]  # fmt: skip
        mock.corrupt_batch("foo-0", 0, "crc")
        fetched = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
        await wire.ask("Fetch", 11, topics={"topic": "foo", "partitions": [fetched]})
        _, (entry,) = await client.get("/journal?api=Fetch&direction=response")
        (damaged,) = entry["body"]["responses"][0]["partitions"][0]["records"]
        assert damaged["problem"] == "wrong checksum"
        _, frame = await client.get(f"/journal/{entry['sequence']}")
        assert frame["entry"]["body"] == entry["body"]


@pytest.mark.slow
@pytest.mark.requirement("DP-CTL-09", "DP-CTL-50", "DP-CTL-51")
def test_the_command_line_writes_and_prints_records(capsys, monkeypatch, tmp_path):
    options = ("--topic", "foo:2:1", "--clock", "manual", "--log-bytes", "64KiB")
    with serving(*options, "--control", "127.0.0.1:0") as (_, ready):
        url = ready["control"]

        def run(*words: str) -> str:
            code, out, err = ctl(capsys, url, *words)
            assert (code, err) == (0, ""), words
            return out

        assert run("produce", "foo", "a", "b", "c") == "foo-0  2 records\nfoo-1  1 records\n"
        run("produce", "foo", "--partition", "1", "--key", "k", "--header", "h=x",
            "--timestamp", "9", "--codec", "gzip", "d")  # fmt: skip
        lines = [json.loads(line) for line in run("consume", "foo", "--json").splitlines()]
        assert [(each["partition"], each["offset"], each["value"]) for each in lines] == [
            (0, 0, "a"), (0, 1, "c"), (1, 0, "b"), (1, 1, "d"),
        ]  # fmt: skip
        assert lines[3]["headers"] == [["h", "x"]]
        assert run("consume", "foo", "--partition", "1", "--from", "1") == (
            'foo-1       1  9  key "k"  h="x"  "d"\n'
        )
        assert run("consume", "foo", "--committed") == run("consume", "foo")
        assert len(run("consume", "foo", "--max", "3", "--values", "hex").splitlines()) == 3

        # What is printed as JSON can be written again.
        run("create-topic", "bar:2:1")
        file = tmp_path / "records.jsonl"  # type: ignore[operator]
        file.write_text("".join(json.dumps(each) + "\n" for each in lines))
        assert run("produce", "bar", "--json-lines", "--file", str(file), "--json") == (
            '{"bar-0": 2, "bar-1": 2}\n'
        )
        again = [json.loads(line) for line in run("consume", "bar", "--json").splitlines()]
        assert again == [{**each, "topic": "bar"} for each in lines]

        shown = run("log", "foo-0").splitlines()
        assert shown[0].startswith("foo-0  offsets 0 to 2, high watermark 2, 1 batches, ")
        assert shown[1:] == ["  broker 1  leader, epoch 0, end 2, in sync",
                             "  epoch 0 from offset 0"]  # fmt: skip
        assert json.loads(run("log", "foo-0", "--json"))["end_offset"] == 2
        for words, code in (
            (["produce", "nope", "x"], 1), (["consume", "nope"], 1), (["log", "foo-7"], 1),
            (["log", "foo-0", "--topic", "foo"], 2), (["produce", "foo", "--header", "x", "y"], 2),
            (["produce", "foo", "--json-lines", "{x"], 1),
            (["produce", "foo", "--json-lines", '{"valeu": 1}'], 1),
            (["offsets", "g", "--wait", "foo-0", "1", "--timeout", "1ms"], 1),
            (["offsets", "g", "--wait", "foo-0"], 2),
        ):  # fmt: skip
            assert ctl(capsys, url, *words)[0] == code, words
    assert run_here(["serve", "--log-bytes", "0"]) == 2
    assert "is not a size" in capsys.readouterr().err
