//! Records and offsets of partitions: `PartitionClient` writes and looks up, `StreamConsumer` reads.
//! rskafka has no partitioner, no groups and no transactions.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use futures::future::{join_all, select_all};
use futures::{FutureExt, StreamExt};
use rskafka::client::consumer::{StartOffset, StreamConsumer, StreamConsumerBuilder};
use rskafka::client::error::Error;
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::Client;
use rskafka::record::Record;
use serde_json::{json, Map, Value};
use tokio::time::{sleep_until, timeout_at, Instant};

use crate::{failure, Failed, Returned};

/// Less than the 15 seconds after which the suite ends an adapter.
const LONGEST_OUTCOME: Duration = Duration::from_secs(13);

type Place = (String, i32);

/// A partition that is read. A stream ends with an error; the next poll makes another, which goes on
/// where that one was.
struct Assigned {
    place: Place,
    start: StartOffset,
    stream: Option<StreamConsumer>,
}

/// The clients of partitions, and what is assigned.
#[derive(Default)]
pub struct Data {
    clients: HashMap<Place, Arc<PartitionClient>>,
    assigned: Vec<Assigned>,
}

/// Split "foo-0".
fn place_of(text: &str) -> Result<Place, Failed> {
    text.rsplit_once('-')
        .and_then(|(topic, index)| Some((topic.to_owned(), index.parse().ok()?)))
        .ok_or_else(|| Failed::Adapter(format!("{text} is not a partition")))
}

fn object<'a>(call: &'a Value, name: &str) -> Result<&'a Map<String, Value>, Failed> {
    call[name].as_object().ok_or_else(|| Failed::Adapter(format!("{name} is not an object")))
}

/// The options of `connect` that the case chose.
fn options<'a>(settings: &'a Value, role: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    settings[role].as_object().into_iter().flatten()
}

fn unsupported<T>(why: String) -> Result<T, Failed> {
    Err(Failed::Unsupported(why))
}

/// The codec, after a check of all options. acks is always "all"; there is nothing to wait for between
/// records of one call, and no time-out of a delivery.
fn codec(settings: &Value) -> Result<Compression, Failed> {
    let mut codec = Compression::default();
    for (name, value) in options(settings, "producer") {
        match (name.as_str(), value) {
            ("linger_ms" | "delivery_timeout_ms", _) => {}
            ("acks", acks) if acks == "all" => {}
            ("idempotence", Value::Bool(false)) => {}
            ("compression", wanted) => {
                codec = match wanted.as_str() {
                    Some("none") => Compression::NoCompression,
                    Some("gzip") => Compression::Gzip,
                    Some("lz4") => Compression::Lz4,
                    Some("snappy") => Compression::Snappy,
                    Some("zstd") => Compression::Zstd,
                    _ => return Err(Failed::Adapter(format!("{wanted} is not a codec"))),
                }
            }
            _ => return unsupported(format!("the client has no option for {name}: {value}")),
        }
    }
    Ok(codec)
}

fn now() -> DateTime<Utc> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    DateTime::from_timestamp_millis(since.as_millis() as i64).unwrap_or_default()
}

fn bytes(text: &Value) -> Option<Vec<u8>> {
    text.as_str().map(|text| text.as_bytes().to_vec())
}

/// A text, or its bytes in hex if it is not UTF-8.
fn text(data: Option<&Vec<u8>>) -> Value {
    match data.map(|data| (data, std::str::from_utf8(data))) {
        None => Value::Null,
        Some((_, Ok(text))) => json!(text),
        Some((data, Err(_))) => {
            json!({"hex": data.iter().map(|byte| format!("{byte:02x}")).collect::<String>()})
        }
    }
}

impl Data {
    async fn partition(&mut self, client: &Client, place: &Place) -> Result<Arc<PartitionClient>, Error> {
        if let Some(known) = self.clients.get(place) {
            return Ok(known.clone());
        }
        let (topic, index) = place.clone();
        let made = Arc::new(client.partition_client(topic, index, UnknownTopicHandling::Retry).await?);
        self.clients.insert(place.clone(), made.clone());
        Ok(made)
    }

    /// The records of each partition are one call, and the calls run at once.
    pub async fn produce(&mut self, client: &Client, settings: &Value, call: &Value) -> Result<Returned, Failed> {
        let codec = codec(settings)?;
        let Some(records) = call["records"].as_array() else {
            return Err(Failed::Adapter("records are no list".to_owned()));
        };
        let mut batches: Vec<(Place, Vec<usize>, Vec<Record>)> = Vec::new();
        for (number, each) in records.iter().enumerate() {
            let Some(index) = each["partition"].as_i64() else {
                return unsupported("the client chooses no partition".to_owned());
            };
            let place = (each["topic"].as_str().unwrap_or_default().to_owned(), index as i32);
            let record = Record {
                key: bytes(&each["key"]),
                value: bytes(&each["value"]),
                headers: BTreeMap::new(),
                timestamp: now(),
            };
            match batches.iter_mut().find(|(known, _, _)| *known == place) {
                Some((_, numbers, batch)) => {
                    numbers.push(number);
                    batch.push(record);
                }
                None => batches.push((place, vec![number], vec![record])),
            }
        }
        let milliseconds = |value: &Value| Duration::from_millis(value.as_u64().unwrap_or(0));
        let limit = milliseconds(&settings["producer"]["delivery_timeout_ms"])
            + milliseconds(&settings["timeout_ms"])
            + Duration::from_secs(4);
        let ends = Instant::now() + limit.min(LONGEST_OUTCOME);
        let mut known = Vec::new();
        for (place, _, _) in &batches {
            known.push(timeout_at(ends, self.partition(client, place)).await);
        }
        let sent = batches.into_iter().zip(known).map(|((place, numbers, batch), partition)| async move {
            let done = match partition {
                Ok(Ok(partition)) => timeout_at(ends, partition.produce(batch, codec)).await,
                Ok(Err(error)) => Ok(Err(error)),
                Err(over) => Err(over),
            };
            (place, numbers, done)
        });
        let (mut outcomes, mut raw) = (vec![Value::Null; records.len()], Vec::new());
        for ((topic, index), numbers, done) in join_all(sent).await {
            raw.push(format!("{topic}-{index}: {done:?}"));
            for (at, number) in numbers.into_iter().enumerate() {
                outcomes[number] = match &done {
                    Ok(Ok(offsets)) => {
                        json!({"topic": topic, "partition": index, "offset": offsets.get(at)})
                    }
                    Ok(Err(error)) => failure(error),
                    Err(_) => json!({"pending": true}),
                };
            }
        }
        Ok((raw.join(", "), Value::Array(outcomes)))
    }

    /// A stream starts at an offset, or where a policy says; it has no policy for an offset that is
    /// out of range.
    pub fn assign(&mut self, settings: &Value, call: &Value) -> Result<Returned, Failed> {
        let mut policy = None;
        for (name, value) in options(settings, "consumer") {
            match (name.as_str(), value.as_str()) {
                ("max_wait_ms" | "partition_max_bytes", _) => {}
                ("isolation", Some("read_committed")) => {} // it has no other
                ("offset_reset", reset) => policy = reset,
                _ => return unsupported(format!("the client has no option for {name}: {value}")),
            }
        }
        self.assigned.clear();
        for (key, offset) in object(call, "offsets")? {
            let start = match (offset.as_i64(), policy) {
                (Some(offset), None | Some("none")) => StartOffset::At(offset),
                (Some(_), _) => {
                    return unsupported("a stream has an offset or a policy, not both".to_owned())
                }
                (None, Some("earliest")) => StartOffset::Earliest,
                (None, Some("latest")) => StartOffset::Latest,
                (None, _) => return unsupported("the client does not choose where to start".to_owned()),
            };
            self.assigned.push(Assigned { place: place_of(key)?, start, stream: None });
        }
        Ok(("()".to_owned(), Value::Null))
    }

    fn stream(&self, partition: Arc<PartitionClient>, start: StartOffset, settings: &Value) -> StreamConsumer {
        let number = |name: &str| settings["consumer"][name].as_i64().map(|number| number as i32);
        let mut builder = StreamConsumerBuilder::new(partition, start);
        if let Some(wait) = number("max_wait_ms") {
            builder = builder.with_max_wait_ms(wait);
        }
        if let Some(most) = number("partition_max_bytes") {
            builder = builder.with_max_batch_size(most);
        }
        builder.build()
    }

    pub async fn poll(&mut self, client: &Client, settings: &Value, call: &Value) -> Result<Returned, Failed> {
        if self.assigned.is_empty() {
            return unsupported("nothing is assigned".to_owned());
        }
        let count = call["records"].as_u64().unwrap_or(1) as usize;
        let ends = Instant::now() + Duration::from_millis(call["ms"].as_u64().unwrap_or(0));
        let mut found: Vec<Value> = Vec::new();
        for at in 0..self.assigned.len() {
            if self.assigned[at].stream.is_none() {
                let place = self.assigned[at].place.clone();
                let partition = match timeout_at(ends, self.partition(client, &place)).await {
                    Ok(made) => made?,
                    Err(_) => return Ok((format!("{found:?}"), Value::Array(found))),
                };
                let made = self.stream(partition, self.assigned[at].start, settings);
                self.assigned[at].stream = Some(made);
            }
        }
        while found.len() < count && Instant::now() < ends {
            let waiting: Vec<_> = self
                .assigned
                .iter_mut()
                .enumerate()
                .filter_map(|(at, each)| Some((at, each.stream.as_mut()?)))
                .map(|(at, stream)| stream.next().map(move |next| (at, next)).boxed())
                .collect();
            if waiting.is_empty() {
                sleep_until(ends).await;
                break;
            }
            let Ok(((at, next), _, _)) = timeout_at(ends, select_all(waiting)).await else {
                break;
            };
            let each = &mut self.assigned[at];
            match next {
                Some(Ok((record, _))) => {
                    each.start = StartOffset::At(record.offset + 1);
                    found.push(json!({
                        "topic": each.place.0,
                        "partition": each.place.1,
                        "offset": record.offset,
                        "timestamp": record.record.timestamp.timestamp_millis(),
                        "key": text(record.record.key.as_ref()),
                        "value": text(record.record.value.as_ref()),
                    }));
                }
                Some(Err(error)) => {
                    each.stream = None;
                    return Err(Failed::Polled(error, found));
                }
                None => each.stream = None,
            }
        }
        Ok((format!("{found:?}"), Value::Array(found)))
    }

    pub async fn list_offsets(&mut self, client: &Client, call: &Value) -> Result<Returned, Failed> {
        let (mut raw, mut found) = (Vec::new(), Map::new());
        for (key, time) in object(call, "times")? {
            let at = match (time.as_str(), time.as_i64()) {
                (Some("earliest"), _) => OffsetAt::Earliest,
                (Some("latest"), _) => OffsetAt::Latest,
                (None, Some(time)) => {
                    OffsetAt::Timestamp(DateTime::from_timestamp_millis(time).unwrap_or_default())
                }
                _ => return Err(Failed::Adapter(format!("{time} is not a time"))),
            };
            let place = place_of(key)?;
            let done = match self.partition(client, &place).await {
                Ok(partition) => partition.get_offset(at).await,
                Err(error) => Err(error),
            };
            raw.push(format!("{key}: {done:?}"));
            found.insert(key.clone(), done.map_or_else(|error| failure(&error), |offset| json!(offset)));
        }
        Ok((raw.join(", "), Value::Object(found)))
    }

    pub async fn delete_records(&mut self, client: &Client, settings: &Value, call: &Value) -> Result<Returned, Failed> {
        let timeout_ms = settings["timeout_ms"].as_i64().unwrap_or(2000) as i32;
        let (mut raw, mut found) = (Vec::new(), Map::new());
        for (key, offset) in object(call, "offsets")? {
            let place = place_of(key)?;
            let offset = offset.as_i64().unwrap_or(-1);
            let done = match self.partition(client, &place).await {
                Ok(partition) => partition.delete_records(offset, timeout_ms).await,
                Err(error) => Err(error),
            };
            raw.push(format!("{key}: {done:?}"));
            found.insert(key.clone(), done.map_or_else(|error| failure(&error), |()| Value::Null));
        }
        Ok((raw.join(", "), Value::Object(found)))
    }

    /// Streams end when they are dropped.
    pub fn close_consumer(&mut self) -> Returned {
        self.assigned.clear();
        ("()".to_owned(), Value::Null)
    }
}
