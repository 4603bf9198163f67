//! Drives rdkafka by the protocol of docs/reference/adapters.md. This file connects and administrates; data.rs
//! has the producer and the consumer. Metadata have no controller, so that no call here describes the cluster.

mod data;

use std::collections::VecDeque;
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rdkafka::admin::{
    AdminClient, AdminOptions, NewPartitions, NewTopic, OwnedResourceSpecifier, ResourceSpecifier, TopicReplication,
    TopicResult,
};
use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::metadata::{Metadata, MetadataTopic};
use rdkafka::util::get_rdkafka_version;
use serde_json::{json, Map, Value};

use data::{list_of, place_of, Data};

const VERSION: &str = "0.39.0"; // as pinned in Cargo.toml

/// The failure of a call. This program does not panic itself.
enum Failed {
    /// The client returned an error.
    Client(KafkaError),
    /// The client returned an error, and these records before it.
    Polled(KafkaError, Vec<Value>),
    /// The client has no call, or no option, for it.
    Unsupported(String),
    /// The adapter did not understand the call.
    Adapter(String),
}

impl From<KafkaError> for Failed {
    fn from(error: KafkaError) -> Self {
        Failed::Client(error)
    }
}

/// What the client returned, as Rust prints it, and the equivalent result.
type Returned = (String, Value);
type Answered = Result<Returned, Failed>;

fn nothing() -> Answered {
    Ok(("()".to_owned(), Value::Null))
}

fn unsupported<T>(why: &str) -> Result<T, Failed> {
    Err(Failed::Unsupported(why.to_owned()))
}

/// The clients' callbacks. They share the tokens of a `connect`; the last one is given again and again.
#[derive(Clone, Default)]
struct Context {
    tokens: Arc<Mutex<VecDeque<Value>>>,
}

impl ClientContext for Context {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _config: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        let mut tokens = self.tokens.lock().map_err(|error| error.to_string())?;
        let given = if tokens.len() > 1 { tokens.pop_front() } else { tokens.front().cloned() };
        match given {
            Some(Value::Object(token)) => Ok(OAuthToken {
                token: token["token"].as_str().unwrap_or_default().to_owned(),
                principal_name: token["principal"].as_str().unwrap_or_default().to_owned(),
                lifetime_ms: token["expires_ms"].as_i64().unwrap_or_default(),
            }),
            _ => Err("there is no token".into()),
        }
    }
}

impl ConsumerContext for Context {}

#[derive(Default)]
struct Adapter {
    settings: Value,
    config: ClientConfig,
    context: Context,
    admin: Option<AdminClient<Context>>,
    data: Data,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_, library) = get_rdkafka_version();
    say(&json!({
        "client": "rdkafka", "version": format!("{VERSION} (librdkafka {library})"), "language": "rust",
        "connect": ["tls", "oauthbearer"],
        "records": ["headers"],
        "capabilities": [
            "abort_transaction", "assign", "assignment", "begin_transaction", "close_consumer", "commit",
            "commit_transaction", "committed", "create_partitions", "create_topics", "delete_groups",
            "delete_records", "delete_topics", "describe_configs", "describe_groups", "describe_topics",
            "list_groups", "list_offsets", "list_topics", "pause", "poll", "position", "produce", "resume", "seek",
            "send", "send_offsets", "subscribe", "unsubscribe",
        ],
        "options": {
            "socket.timeout.ms": "timeout_ms",
            "socket.connection.setup.timeout.ms": "timeout_ms, at least 1000",
            "log_level": "0",
            "timeout of each call": "timeout_ms, three times that for transactions",
            "request.timeout.ms of FutureProducer": "timeout_ms",
            "enable.auto.commit of BaseConsumer": "false, but with auto_commit_ms",
            "group.id of BaseConsumer": "kspec, where the case has none",
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
        let op = call["op"].as_str().unwrap_or_default();
        let done = match op {
            "connect" => self.connect(call),
            "close" => {
                self.data.close();
                self.admin = None;
                nothing()
            }
            _ => match self.data.answer(op, call).await {
                Some(answered) => answered,
                None => self.administrate(op, call).await,
            },
        };
        match done {
            Ok((raw, result)) => json!({"ok": true, "result": result, "raw": raw}),
            Err(Failed::Adapter(message)) => {
                json!({"adapter_error": {"error": "Failed::Adapter", "message": message}})
            }
            Err(Failed::Unsupported(why)) => json!({"unsupported": why}),
            Err(Failed::Polled(error, records)) => failed(&error, json!({"ok": false, "records": records})),
            Err(Failed::Client(error)) => failed(&error, json!({"ok": false})),
        }
    }

    fn connect(&mut self, call: &Value) -> Answered {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let milliseconds = call["timeout_ms"].as_u64().unwrap_or(2000);
        let over = if call["tls"].is_object() { "SSL" } else { "PLAINTEXT" };
        let protocol = if call["sasl"].is_object() { format!("SASL_{over}") } else { over.to_owned() };
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", text(&call["bootstrap"]))
            .set("client.id", text(&call["client_id"]))
            .set("security.protocol", protocol)
            .set("socket.timeout.ms", milliseconds.to_string())
            .set("socket.connection.setup.timeout.ms", milliseconds.max(1000).to_string())
            .set("log_level", "0")
            .set_log_level(RDKafkaLogLevel::Emerg);
        let secrets = [
            ("tls", "ca", "ssl.ca.location"),
            ("tls", "certificate", "ssl.certificate.location"),
            ("tls", "key", "ssl.key.location"),
            ("sasl", "mechanism", "sasl.mechanism"),
            ("sasl", "username", "sasl.username"),
            ("sasl", "password", "sasl.password"),
        ];
        for (part, name, option) in secrets {
            if let Some(given) = call[part][name].as_str() {
                config.set(option, given);
            }
        }
        let tokens = call["sasl"]["tokens"].as_array().cloned().unwrap_or_default();
        self.context = Context { tokens: Arc::new(Mutex::new(tokens.into())) };
        self.data = Data::new(config.clone(), self.context.clone(), call);
        (self.settings, self.config, self.admin) = (call.clone(), config, None);
        nothing()
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(self.settings["timeout_ms"].as_u64().unwrap_or(2000))
    }

    fn metadata(&mut self, topic: Option<&str>) -> KafkaResult<Metadata> {
        let timeout = self.timeout();
        self.admin()?.inner().fetch_metadata(topic, timeout)
    }

    fn admin(&mut self) -> KafkaResult<&AdminClient<Context>> {
        if self.admin.is_none() {
            self.admin = Some(self.config.create_with_context(self.context.clone())?);
        }
        Ok(self.admin.as_ref().unwrap())
    }

    async fn administrate(&mut self, op: &str, call: &Value) -> Answered {
        let timeout = self.timeout();
        let options = AdminOptions::new()
            .request_timeout(Some(timeout))
            .validate_only(call["validate_only"].as_bool().unwrap_or(false));
        match op {
            "list_topics" => {
                let metadata = self.metadata(None)?;
                let mut names: Vec<&str> = metadata.topics().iter().map(MetadataTopic::name).collect();
                names.sort_unstable();
                Ok((format!("{names:?}"), json!(names)))
            }
            "describe_topics" => {
                let mut found = Map::new();
                for topic in strings(&call["topics"])? {
                    for each in self.metadata(Some(topic))?.topics() {
                        found.insert(each.name().to_owned(), described(each));
                    }
                }
                Ok((format!("{found:?}"), Value::Object(found)))
            }
            "create_topics" => {
                let mut wanted = Vec::new();
                for (name, each) in object(call, "topics")? {
                    let partitions = each["partitions"].as_i64().unwrap_or(1) as i32;
                    let replicas = each["replication_factor"].as_i64().unwrap_or(1) as i32;
                    wanted.push(NewTopic::new(name, partitions, TopicReplication::Fixed(replicas)));
                }
                Ok(outcomes(self.admin()?.create_topics(&wanted, &options).await?))
            }
            "delete_topics" => {
                let names = strings(&call["topics"])?;
                Ok(outcomes(self.admin()?.delete_topics(&names, &options).await?))
            }
            "create_partitions" => {
                let wanted: Vec<NewPartitions> = object(call, "counts")?
                    .iter()
                    .map(|(name, count)| NewPartitions::new(name, count.as_u64().unwrap_or(1) as usize))
                    .collect();
                Ok(outcomes(self.admin()?.create_partitions(&wanted, &options).await?))
            }
            "delete_groups" => {
                let names = strings(&call["groups"])?;
                Ok(outcomes(self.admin()?.delete_groups(&names, &options).await?))
            }
            "delete_records" => {
                let offsets = list_of(object(call, "offsets")?)?;
                let done = self.admin()?.delete_records(&offsets, &options).await?;
                let mut found = Map::new();
                for each in done.elements() {
                    let key = format!("{}-{}", each.topic(), each.partition());
                    found.insert(key, each.error().map_or_else(|error| failed(&error, json!({})), |()| Value::Null));
                }
                Ok((format!("{done:?}"), Value::Object(found)))
            }
            "describe_configs" => self.describe_configs(call, &options).await,
            "alter_configs" => unsupported("alter_configs replaces all configs of a resource"),
            "list_groups" if call["states"].is_array() || call["types"].is_array() => {
                unsupported("fetch_group_list has no filter")
            }
            "list_groups" => {
                let listed = self.admin()?.inner().fetch_group_list(None, timeout)?;
                let mut names: Vec<&str> = listed.groups().iter().map(|group| group.name()).collect();
                names.sort_unstable();
                Ok((format!("{names:?}"), json!({"groups": names})))
            }
            "describe_groups" => {
                let mut found = Map::new();
                for name in strings(&call["groups"])? {
                    let listed = match self.admin()?.inner().fetch_group_list(Some(name), timeout) {
                        Ok(listed) => listed,
                        Err(error) => {
                            found.insert(name.to_owned(), failed(&error, json!({})));
                            continue;
                        }
                    };
                    for group in listed.groups() {
                        let row = json!({"state": group.state(), "members": group.members().len()});
                        found.insert(group.name().to_owned(), row);
                    }
                }
                Ok((format!("{found:?}"), Value::Object(found)))
            }
            "list_offsets" => {
                let mut found = Map::new();
                for (key, time) in object(call, "times")? {
                    let (topic, partition) = place_of(key)?;
                    let offset = match time.as_i64() {
                        Some(_) => self.data.offset_for_time(key, time)?,
                        None => self
                            .admin()?
                            .inner()
                            .fetch_watermarks(&topic, partition, timeout)
                            .map(|(low, high)| json!(if time == "earliest" { low } else { high })),
                    };
                    found.insert(key.clone(), offset.unwrap_or_else(|error| failed(&error, json!({}))));
                }
                Ok((format!("{found:?}"), Value::Object(found)))
            }
            _ => unsupported(&format!("no public call for {op}")),
        }
    }

    /// Those that failed have no name: they are in the order of the request.
    async fn describe_configs(&mut self, call: &Value, options: &AdminOptions) -> Answered {
        let names = strings(&call["resources"])?;
        let wanted: Vec<ResourceSpecifier> = names
            .iter()
            .filter_map(|name| match name.split_once(':')? {
                ("broker", id) => Some(ResourceSpecifier::Broker(id.parse().ok()?)),
                (_, topic) => Some(ResourceSpecifier::Topic(topic)),
            })
            .collect();
        let done = self.admin()?.describe_configs(&wanted, options).await?;
        let mut found = Map::new();
        for (at, each) in done.iter().enumerate() {
            match each {
                Ok(resource) => {
                    let name = match &resource.specifier {
                        OwnedResourceSpecifier::Broker(id) => format!("broker:{id}"),
                        OwnedResourceSpecifier::Topic(name) => format!("topic:{name}"),
                        OwnedResourceSpecifier::Group(name) => format!("group:{name}"),
                    };
                    let values = resource.entries.iter().map(|entry| (entry.name.clone(), json!(entry.value)));
                    found.insert(name, Value::Object(values.collect()));
                }
                Err(code) => {
                    found.insert(names.get(at).copied().unwrap_or_default().to_owned(), coded(*code));
                }
            }
        }
        Ok((format!("{done:?}"), Value::Object(found)))
    }
}

fn object<'a>(call: &'a Value, name: &str) -> Result<&'a Map<String, Value>, Failed> {
    call[name].as_object().ok_or_else(|| Failed::Adapter(format!("{name} is not an object")))
}

fn strings(value: &Value) -> Result<Vec<&str>, Failed> {
    let texts: Option<Vec<&str>> = value.as_array().and_then(|items| items.iter().map(Value::as_str).collect());
    texts.ok_or_else(|| Failed::Adapter(format!("not a list of texts: {value}")))
}

fn described(topic: &MetadataTopic) -> Value {
    if let Some(error) = topic.error() {
        return coded(error.into());
    }
    let rows = topic.partitions().iter().map(|each| {
        let row = json!({"leader": each.leader(), "replicas": each.replicas(), "isr": each.isr()});
        (each.id().to_string(), row)
    });
    Value::Object(rows.collect())
}

/// The outcomes of topics or groups.
fn outcomes(done: Vec<TopicResult>) -> Returned {
    let raw = format!("{done:?}");
    let found = done.into_iter().map(|each| match each {
        Ok(name) => (name, Value::Null),
        Err((name, code)) => (name, coded(code)),
    });
    (raw, Value::Object(found.collect()))
}

/// Kafka's code. Negative ones are librdkafka's own, except -1.
fn number(code: RDKafkaErrorCode) -> Option<i32> {
    let number = code as i32;
    (number >= -1).then_some(number)
}

fn coded(code: RDKafkaErrorCode) -> Value {
    json!({"error": "RDKafkaErrorCode", "code": number(code), "message": code.to_string()})
}

/// The members of an error, after those of `answer`.
fn failed(error: &KafkaError, mut answer: Value) -> Value {
    let code = match error {
        KafkaError::AdminOp(code) => Some(*code),
        _ => error.rdkafka_error_code(),
    };
    answer["error"] = json!("KafkaError");
    answer["code"] = json!(code.and_then(number));
    answer["message"] = json!(error.to_string());
    answer
}
