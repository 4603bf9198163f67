"""A released client against the steps of a tester; docs/how-to has the same tests."""

import pytest

from mockbroker.running.fixture import MockKafka
from mockbroker.simulation.state.actions import RecordsLost

kafka = pytest.importorskip("kafka")
errors = pytest.importorskip("kafka.errors")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.requirement("DP-CTL-12")
@pytest.mark.mock_kafka(topics=["foo=1,2,3"])
def test_a_consumer_learns_that_an_acknowledged_record_is_lost(mock_kafka: MockKafka) -> None:
    foo = kafka.TopicPartition("foo", 0)
    producer = kafka.KafkaProducer(bootstrap_servers=mock_kafka.bootstrap, acks="all")
    consumer = kafka.KafkaConsumer(bootstrap_servers=mock_kafka.bootstrap, auto_offset_reset="none")
    consumer.assign([foo])
    consumer.seek(foo, 0)
    producer.send("foo", b"kept").get(10)
    mock_kafka.leave_isr("foo-0", 2)
    producer.send("foo", b"lost").get(10)
    assert [next(consumer).value for _ in range(2)] == [b"kept", b"lost"]

    mock_kafka.unclean_election("foo-0", 2)
    mock_kafka.assert_produced("foo", value="lost", times=0)
    log = mock_kafka.cluster.cluster.log
    assert [each.change for each in log if isinstance(each.change, RecordsLost)] == [
        RecordsLost("foo", 0, 1, 1, 1)
    ]
    with pytest.raises(errors.LogTruncationError) as truncated:
        next(consumer)
    assert truncated.value.divergent_offsets[foo].offset == 1
    consumer.close()
    producer.close()


@pytest.mark.requirement("DP-CTL-08")
@pytest.mark.mock_kafka(topics=["foo:1:1"])
def test_a_lost_answer_makes_no_duplicate(mock_kafka: MockKafka) -> None:
    mock_kafka.fault(api="Produce", disconnect="after", times=1)
    producer = kafka.KafkaProducer(bootstrap_servers=mock_kafka.bootstrap, enable_idempotence=True)
    producer.send("foo", b"once").get(10)
    mock_kafka.assert_requested("Produce", times=2)
    mock_kafka.assert_produced("foo", value="once", times=1)
    producer.close()
