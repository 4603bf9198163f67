//! Drives rskafka by the protocol of docs/reference/adapters.md. This file connects, lists and creates
//! topics; data.rs has records and offsets.

mod data;

use std::io::{self, BufRead, Write};
use std::time::Duration;

use rskafka::client::error::{Error, ProtocolError};
use rskafka::client::{Client, ClientBuilder, Credentials, SaslConfig};
use rskafka::BackoffConfig;
use serde_json::{json, Map, Value};

use data::Data;

const VERSION: &str = "0.6.0"; // as pinned in Cargo.toml

/// The failure of a call. A panic of the client ends the process; this program does not panic itself.
enum Failed {
    /// The client returned an error.
    Client(Error),
    /// The client returned an error, and these records before it.
    Polled(Error, Vec<Value>),
    /// The client has no call, or no option, for it.
    Unsupported(String),
    /// The adapter did not understand the call.
    Adapter(String),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Client(error)
    }
}

/// What the client returned, as Rust prints it, and the equivalent result.
type Returned = (String, Value);

/// The arguments of `connect`. The client is made at the first call, so that its first error is an answer.
#[derive(Default)]
struct Adapter {
    settings: Value,
    client: Option<Client>,
    data: Data,
    /// The client that writes: its retries last as long as a delivery may.
    producer: Option<Client>,
    written: Data,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    say(&json!({
        "client": "rskafka", "version": VERSION, "language": "rust",
        "capabilities": [
            "assign", "close_consumer", "create_topics", "delete_records", "list_offsets", "list_topics",
            "poll", "produce",
        ],
        "options": {
            "BackoffConfig.init_backoff": "50ms",
            "BackoffConfig.deadline": "timeout_ms; of the client that writes, delivery_timeout_ms",
            "timeout_ms of create_topic and delete_records": "timeout_ms",
            "UnknownTopicHandling": "Retry",
        },
    }));
    let mut adapter = Adapter::default();
    for line in io::stdin().lock().lines() {
        let call: Value = serde_json::from_str(&line.unwrap()).unwrap();
        say(&runtime.block_on(adapter.answer(&call)));
    }
}

fn say(line: &Value) {
    println!("{line}");
    io::stdout().flush().unwrap();
}

impl Adapter {
    async fn answer(&mut self, call: &Value) -> Value {
        let done = match call["op"].as_str() {
            Some("connect") => {
                self.settings = call.clone();
                Ok(("()".to_owned(), Value::Null))
            }
            Some("close") => {
                (self.data, self.written) = (Data::default(), Data::default());
                (self.client, self.producer) = (None, None);
                Ok(("()".to_owned(), Value::Null))
            }
            Some("list_topics") => self.list_topics().await,
            Some("assign") => self.data.assign(&self.settings, call),
            Some("close_consumer") => Ok(self.data.close_consumer()),
            Some("produce") => self.produce(call).await,
            Some("poll" | "list_offsets" | "delete_records") => self.of_partitions(call).await,
            Some("create_topics") if call["validate_only"] == true => {
                return json!({"unsupported": "create_topic cannot only validate"});
            }
            Some("create_topics") => self.create_topics(&call["topics"]).await,
            _ => return json!({"unsupported": format!("no public call for {}", call["op"])}),
        };
        match done {
            Ok((raw, result)) => json!({"ok": true, "result": result, "raw": raw}),
            Err(Failed::Adapter(message)) => {
                json!({"adapter_error": {"error": "Failed::Adapter", "message": message}})
            }
            Err(Failed::Unsupported(why)) => json!({"unsupported": why}),
            Err(Failed::Polled(error, records)) => {
                let mut answer = failure(&error);
                answer["ok"] = json!(false);
                answer["records"] = json!(records);
                answer
            }
            Err(Failed::Client(error)) => {
                let mut answer = failure(&error);
                answer["ok"] = json!(false);
                answer
            }
        }
    }

    async fn client(&mut self) -> Result<&Client, Error> {
        if self.client.is_none() {
            self.client = Some(self.connect(&self.settings["timeout_ms"]).await?);
        }
        Ok(self.client.as_ref().unwrap())
    }

    async fn connect(&self, deadline: &Value) -> Result<Client, Error> {
        let text = |name: &str| self.settings[name].as_str().unwrap_or_default().to_owned();
        let servers = text("bootstrap").split(',').map(str::to_owned).collect();
        // It has no request timeout; this one limits its retries.
        let backoff = BackoffConfig {
            init_backoff: Duration::from_millis(50),
            deadline: deadline.as_u64().map(Duration::from_millis),
            ..Default::default()
        };
        let mut builder =
            ClientBuilder::new(servers).client_id(text("client_id")).backoff_config(backoff);
        if let Some(sasl) = self.settings["sasl"].as_object() {
            let part = |name: &str| sasl[name].as_str().unwrap_or_default().to_owned();
            let who = Credentials::new(part("username"), part("password"));
            builder = builder.sasl_config(match part("mechanism").as_str() {
                "SCRAM-SHA-256" => SaslConfig::ScramSha256(who),
                "SCRAM-SHA-512" => SaslConfig::ScramSha512(who),
                _ => SaslConfig::Plain(who),
            });
        }
        builder.build().await
    }

    async fn produce(&mut self, call: &Value) -> Result<Returned, Failed> {
        if self.producer.is_none() {
            let delivery = &self.settings["producer"]["delivery_timeout_ms"];
            self.producer = Some(self.connect(delivery).await?);
        }
        let Some(client) = &self.producer else { unreachable!() };
        self.written.produce(client, &self.settings, call).await
    }

    async fn of_partitions(&mut self, call: &Value) -> Result<Returned, Failed> {
        self.client().await?;
        let Some(client) = &self.client else { unreachable!() };
        match call["op"].as_str() {
            Some("poll") => self.data.poll(client, &self.settings, call).await,
            Some("list_offsets") => self.data.list_offsets(client, call).await,
            _ => self.data.delete_records(client, &self.settings, call).await,
        }
    }

    async fn list_topics(&mut self) -> Result<Returned, Failed> {
        let topics = self.client().await?.list_topics().await?;
        let raw = format!("{topics:?}");
        let mut names: Vec<String> = topics.into_iter().map(|topic| topic.name).collect();
        names.sort();
        Ok((raw, json!(names)))
    }

    async fn create_topics(&mut self, wanted: &Value) -> Result<Returned, Failed> {
        let Some(wanted) = wanted.as_object() else {
            return Err(Failed::Adapter(format!("topics are no object: {wanted}")));
        };
        let timeout_ms = self.settings["timeout_ms"].as_i64().unwrap_or(2000) as i32;
        let controller = self.client().await?.controller_client()?;
        let (mut raw, mut outcomes) = (Vec::new(), Map::new());
        for (name, numbers) in wanted {
            let partitions = numbers["partitions"].as_i64().unwrap_or(1) as i32;
            let replicas = numbers["replication_factor"].as_i64().unwrap_or(1) as i16;
            let done = controller.create_topic(name, partitions, replicas, timeout_ms).await;
            raw.push(format!("{name}: {done:?}"));
            outcomes.insert(name.clone(), done.map_or_else(|error| failure(&error), |_| Value::Null));
        }
        Ok((raw.join(", "), Value::Object(outcomes)))
    }
}

/// Kafka's code is the number that rskafka itself has for its error; only `Debug` prints the
/// variant's name.
fn failure(error: &Error) -> Value {
    let code = match error {
        Error::ServerError { protocol_error, .. } => (-1..=200)
            .find(|code| ProtocolError::new(*code).as_ref() == Some(protocol_error))
            .or(match protocol_error {
                ProtocolError::Unknown(code) => Some(*code),
                _ => None,
            }),
        _ => None,
    };
    let debug = format!("{error:?}");
    let variant: String = debug.chars().take_while(char::is_ascii_alphanumeric).collect();
    json!({"error": format!("Error::{variant}"), "code": code, "message": error.to_string()})
}
