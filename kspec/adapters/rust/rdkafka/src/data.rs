//! The producer and the consumer, each made by its first call.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord, Producer, PurgeConfig};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::{json, Map, Value};
use tokio::time::{timeout_at, Instant};

use crate::{failed, nothing, object, strings, unsupported, Answered, Context, Failed};

/// Less than the 15 seconds after which the suite ends an adapter.
const LONGEST_OUTCOME: Duration = Duration::from_secs(13);

const PRODUCER_OPTIONS: &[(&str, &str)] = &[
    ("acks", "acks"),
    ("idempotence", "enable.idempotence"),
    ("compression", "compression.type"),
    ("linger_ms", "linger.ms"),
    ("batch_bytes", "batch.size"),
    ("max_in_flight", "max.in.flight"),
    ("delivery_timeout_ms", "delivery.timeout.ms"),
    ("transactional_id", "transactional.id"),
    ("transaction_timeout_ms", "transaction.timeout.ms"),
    ("metadata_age_ms", "topic.metadata.refresh.interval.ms"),
    ("partitioner", "partitioner"),
];
const CONSUMER_OPTIONS: &[(&str, &str)] = &[
    ("group", "group.id"),
    ("offset_reset", "auto.offset.reset"),
    ("isolation", "isolation.level"),
    ("max_wait_ms", "fetch.wait.max.ms"),
    ("partition_max_bytes", "max.partition.fetch.bytes"),
    ("rack", "client.rack"),
    ("protocol", "group.protocol"),
    ("instance_id", "group.instance.id"),
    ("session_timeout_ms", "session.timeout.ms"),
    ("heartbeat_ms", "heartbeat.interval.ms"),
    ("metadata_age_ms", "topic.metadata.refresh.interval.ms"),
    ("max_poll_ms", "max.poll.interval.ms"),
    ("assignors", "partition.assignment.strategy"),
    ("remote_assignor", "group.remote.assignor"),
    ("auto_commit_ms", "auto.commit.interval.ms"),
];

#[derive(Default)]
pub struct Data {
    config: ClientConfig,
    context: Context,
    settings: Value,
    producer: Option<FutureProducer<Context>>,
    consumer: Option<BaseConsumer<Context>>,
    /// for transactions
    ready: bool,
}

/// Split "foo-0".
pub fn place_of(text: &str) -> Result<(String, i32), Failed> {
    text.rsplit_once('-')
        .and_then(|(topic, index)| Some((topic.to_owned(), index.parse().ok()?)))
        .ok_or_else(|| Failed::Adapter(format!("{text} is not a partition")))
}

/// Partitions with their offsets; those without one start where the client says.
pub fn list_of(offsets: &Map<String, Value>) -> Result<TopicPartitionList, Failed> {
    let mut list = TopicPartitionList::new();
    for (key, offset) in offsets {
        let (topic, partition) = place_of(key)?;
        match offset.as_i64() {
            Some(offset) => list.add_partition_offset(&topic, partition, Offset::Offset(offset))?,
            None => drop(list.add_partition(&topic, partition)),
        }
    }
    Ok(list)
}

fn named(call: &Value) -> Result<TopicPartitionList, Failed> {
    let mut list = TopicPartitionList::new();
    for key in strings(&call["partitions"])? {
        let (topic, partition) = place_of(key)?;
        list.add_partition(&topic, partition);
    }
    Ok(list)
}

/// Offsets as the client gives them, negative if there is none.
fn offsets_of(list: &TopicPartitionList) -> Map<String, Value> {
    let rows = list.elements();
    rows.iter().map(|each| (format!("{}-{}", each.topic(), each.partition()), json!(raw(each.offset())))).collect()
}

fn raw(offset: Offset) -> i64 {
    offset.to_raw().unwrap_or(-1)
}

/// A text, or its bytes in hex if it is not UTF-8.
fn text(data: Option<&[u8]>) -> Value {
    match data.map(|data| (data, std::str::from_utf8(data))) {
        None => Value::Null,
        Some((_, Ok(text))) => json!(text),
        Some((data, Err(_))) => {
            json!({"hex": data.iter().map(|byte| format!("{byte:02x}")).collect::<String>()})
        }
    }
}

fn record_of(message: &BorrowedMessage) -> Value {
    let headers: Vec<Value> = message
        .headers()
        .map(|all| all.iter().map(|each| json!([each.key, text(each.value)])).collect())
        .unwrap_or_default();
    json!({
        "topic": message.topic(), "partition": message.partition(), "offset": message.offset(),
        "timestamp": message.timestamp().to_millis().unwrap_or(-1),
        "key": text(message.key()), "value": text(message.payload()), "headers": headers,
    })
}

fn record<'a>(each: &'a Value) -> FutureRecord<'a, str, str> {
    let mut record = FutureRecord::to(each["topic"].as_str().unwrap_or_default());
    record.key = each["key"].as_str();
    record.payload = each["value"].as_str();
    record.partition = each["partition"].as_i64().map(|index| index as i32);
    if let Some(pairs) = each["headers"].as_array() {
        let empty = OwnedHeaders::new_with_capacity(pairs.len());
        record.headers = Some(pairs.iter().fold(empty, |headers, pair| {
            headers.insert(Header { key: pair[0].as_str().unwrap_or_default(), value: pair[1].as_str() })
        }));
    }
    record
}

/// Drop a client for at most a second: its state may not allow a clean close.
fn end(client: impl Send + 'static) {
    let (ended, end) = mpsc::channel();
    thread::spawn(move || {
        drop(client);
        let _ = ended.send(());
    });
    let _ = end.recv_timeout(Duration::from_secs(1));
}

impl Data {
    pub fn new(config: ClientConfig, context: Context, call: &Value) -> Self {
        Data { config, context, settings: call.clone(), ..Data::default() }
    }

    pub fn close(&mut self) {
        if let Some(producer) = self.producer.take() {
            producer.purge(PurgeConfig::default().queue().inflight());
            end(producer);
        }
        if let Some(consumer) = self.consumer.take() {
            end(consumer);
        }
        self.ready = false;
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(self.settings["timeout_ms"].as_u64().unwrap_or(2000))
    }

    /// The common options, and by the client's names those that the case chose.
    fn options(&self, role: &str, names: &[(&str, &str)]) -> Result<ClientConfig, Failed> {
        let mut config = self.config.clone();
        for (name, value) in self.settings[role].as_object().into_iter().flatten() {
            let Some((_, option)) = names.iter().find(|(known, _)| known == name) else {
                return unsupported(&format!("the client has no option for {name}"));
            };
            let chosen = match (name.as_str(), value) {
                ("offset_reset", Value::String(reset)) if reset == "none" => "error".to_owned(),
                ("partitioner", _) => "murmur2_random".to_owned(),
                (_, Value::Array(_)) => strings(value)?.join(","),
                (_, Value::String(text)) => text.clone(),
                _ => value.to_string(),
            };
            if chosen.split(',').any(|assignor| name == "assignors" && assignor == "sticky") {
                return unsupported("librdkafka has no assignor sticky");
            }
            config.set(*option, chosen);
        }
        Ok(config)
    }

    fn producer(&mut self) -> Result<&FutureProducer<Context>, Failed> {
        if self.producer.is_none() {
            let mut config = self.options("producer", PRODUCER_OPTIONS)?;
            config.set("request.timeout.ms", self.timeout().as_millis().to_string());
            self.producer = Some(config.create_with_context(self.context.clone())?);
        }
        Ok(self.producer.as_ref().unwrap())
    }

    fn consumer(&mut self) -> Result<&BaseConsumer<Context>, Failed> {
        if self.consumer.is_none() {
            let chosen = self.options("consumer", CONSUMER_OPTIONS)?;
            let mut config = chosen.clone();
            let automatic = self.settings["consumer"]["auto_commit_ms"].is_number();
            config.set("enable.auto.commit", automatic.to_string());
            if chosen.get("group.id").is_none() {
                config.set("group.id", "kspec");
            }
            self.consumer = Some(config.create_with_context(self.context.clone())?);
        }
        Ok(self.consumer.as_ref().unwrap())
    }

    pub fn offset_for_time(&mut self, key: &str, time: &Value) -> Result<KafkaResult<Value>, Failed> {
        let timeout = self.timeout();
        let wanted = list_of(&Map::from_iter([(key.to_owned(), time.clone())]))?;
        let found = self.consumer()?.offsets_for_times(wanted, timeout);
        Ok(found.map(|list| offsets_of(&list)[key].clone()))
    }

    /// The answer to a call of the producer or of the consumer; None if it is another call.
    pub async fn answer(&mut self, op: &str, call: &Value) -> Option<Answered> {
        Some(match op {
            "produce" => self.produce(call).await,
            "send" => self.send(call),
            "begin_transaction" => self.begin(),
            "send_offsets" => self.send_offsets(call),
            "commit_transaction" => self.end_transaction(|producer, limit| producer.commit_transaction(limit)),
            "abort_transaction" => self.end_transaction(|producer, limit| producer.abort_transaction(limit)),
            "poll" => self.poll(call),
            "close_consumer" => {
                self.consumer = None;
                nothing()
            }
            _ => return self.consume(op, call),
        })
    }

    async fn produce(&mut self, call: &Value) -> Answered {
        let milliseconds = |value: &Value| Duration::from_millis(value.as_u64().unwrap_or(0));
        let limit = milliseconds(&self.settings["producer"]["delivery_timeout_ms"])
            + milliseconds(&self.settings["timeout_ms"])
            + Duration::from_secs(4);
        let Some(records) = call["records"].as_array() else {
            return Err(Failed::Adapter("records are no list".to_owned()));
        };
        let producer = self.producer()?;
        let sent: Vec<_> = records.iter().map(|each| producer.send_result(record(each))).collect();
        let ends = Instant::now() + limit.min(LONGEST_OUTCOME);
        let (mut shown, mut outcomes) = (Vec::new(), Vec::new());
        for (each, sending) in records.iter().zip(sent) {
            let outcome = match sending {
                Err((error, _)) => Err(error),
                Ok(delivery) => match timeout_at(ends, delivery).await {
                    Err(_) => {
                        outcomes.push(json!({"pending": true}));
                        continue;
                    }
                    Ok(Err(_)) => Err(KafkaError::Canceled),
                    Ok(Ok(done)) => done.map_err(|(error, _)| error),
                },
            };
            shown.push(format!("{outcome:?}"));
            outcomes.push(match outcome {
                Ok(to) => json!({"topic": each["topic"], "partition": to.partition, "offset": to.offset}),
                Err(error) => failed(&error, json!({})),
            });
        }
        Ok((shown.join(", "), Value::Array(outcomes)))
    }

    fn send(&mut self, call: &Value) -> Answered {
        let producer = self.producer()?;
        for each in call["records"].as_array().into_iter().flatten() {
            producer.send_result(record(each)).map_err(|(error, _)| error)?;
        }
        nothing()
    }

    fn begin(&mut self) -> Answered {
        let (limit, ready) = (3 * self.timeout(), self.ready);
        let producer = self.producer()?;
        if !ready {
            producer.init_transactions(limit)?;
        }
        producer.begin_transaction()?;
        self.ready = true;
        nothing()
    }

    fn send_offsets(&mut self, call: &Value) -> Answered {
        let limit = 3 * self.timeout();
        let offsets = list_of(object(call, "offsets")?)?;
        let Some(group) = self.consumer()?.group_metadata() else {
            return unsupported("the consumer has no group");
        };
        self.producer()?.send_offsets_to_transaction(&offsets, &group, limit)?;
        nothing()
    }

    fn end_transaction(
        &mut self,
        how: impl FnOnce(&FutureProducer<Context>, Duration) -> KafkaResult<()>,
    ) -> Answered {
        let limit = 3 * self.timeout();
        how(self.producer()?, limit)?;
        nothing()
    }

    /// Errors of librdkafka itself, such as of connections, are informational: the consumer goes on. They are
    /// the call's if the records did not come. Any other error ends it.
    fn poll(&mut self, call: &Value) -> Answered {
        let count = call["records"].as_u64().unwrap_or(1) as usize;
        let ends = Instant::now() + Duration::from_millis(call["ms"].as_u64().unwrap_or(0));
        let consumer = self.consumer()?;
        let mut found = Vec::new();
        let mut last = None;
        while found.len() < count && Instant::now() < ends {
            match consumer.poll(ends - Instant::now()) {
                None => {}
                Some(Ok(message)) => found.push(record_of(&message)),
                Some(Err(KafkaError::MessageConsumption(code)))
                    if (code as i32) < -1 && code != RDKafkaErrorCode::AutoOffsetReset =>
                {
                    last = Some(KafkaError::MessageConsumption(code));
                }
                Some(Err(error)) => return Err(Failed::Polled(error, found)),
            }
        }
        match last {
            Some(error) if found.len() < count => Err(Failed::Polled(error, found)),
            _ => Ok((format!("{found:?}"), Value::Array(found))),
        }
    }

    fn consume(&mut self, op: &str, call: &Value) -> Option<Answered> {
        Some(match op {
            "assign" => self.consuming(|consumer, _| Ok(consumer.assign(&list_of(object(call, "offsets")?)?)?)),
            "seek" => self.consuming(|consumer, timeout| {
                for (key, offset) in object(call, "offsets")? {
                    let (topic, partition) = place_of(key)?;
                    consumer.seek(&topic, partition, Offset::Offset(offset.as_i64().unwrap_or(0)), timeout)?;
                }
                Ok(())
            }),
            "pause" => self.consuming(|consumer, _| Ok(consumer.pause(&named(call)?)?)),
            "resume" => self.consuming(|consumer, _| Ok(consumer.resume(&named(call)?)?)),
            "subscribe" => self.consuming(|consumer, _| {
                let topics = match call["pattern"].as_str() {
                    Some(pattern) => vec![pattern],
                    None => strings(&call["topics"])?,
                };
                Ok(consumer.subscribe(&topics)?)
            }),
            "unsubscribe" => self.consuming(|consumer, _| {
                consumer.unsubscribe();
                Ok(())
            }),
            "commit" => self.consuming(|consumer, _| {
                Ok(match call["offsets"].as_object() {
                    Some(offsets) => consumer.commit(&list_of(offsets)?, CommitMode::Sync)?,
                    None => consumer.commit_consumer_state(CommitMode::Sync)?,
                })
            }),
            "assignment" => self.found(|consumer, _| {
                let mut keys: Vec<String> = offsets_of(&consumer.assignment()?).into_iter().map(|(key, _)| key).collect();
                keys.sort_unstable();
                Ok(json!(keys))
            }),
            // The client has a call for all that is assigned.
            "position" => self.found(|consumer, _| {
                let all = offsets_of(&consumer.position()?);
                let wanted = strings(&call["partitions"])?;
                let found = all.into_iter().filter(|(key, _)| wanted.contains(&key.as_str()));
                Ok(Value::Object(found.collect()))
            }),
            "committed" => self.found(|consumer, timeout| {
                Ok(Value::Object(offsets_of(&consumer.committed_offsets(named(call)?, timeout)?)))
            }),
            _ => return None,
        })
    }

    fn found(
        &mut self,
        work: impl FnOnce(&BaseConsumer<Context>, Duration) -> Result<Value, Failed>,
    ) -> Answered {
        let timeout = self.timeout();
        let result = work(self.consumer()?, timeout)?;
        Ok((result.to_string(), result))
    }

    fn consuming(
        &mut self,
        work: impl FnOnce(&BaseConsumer<Context>, Duration) -> Result<(), Failed>,
    ) -> Answered {
        let timeout = self.timeout();
        work(self.consumer()?, timeout)?;
        nothing()
    }
}
