// Rust tests with a mock Kafka cluster each, with nothing but the standard library: copy Mock into
// your tests, and put your client where this one speaks for itself.
//
//   uv tool install 'kproto[mock] @ git+https://github.com/kproto/kproto'
//
// puts `mockbroker` on PATH, and so does `pipx install`. As it stands:
//
//   rustc --edition 2021 --test mock.rs && ./mock
//
// With serde_json and an HTTP client at hand, `ask` and `text_of` are what those do better.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// The host and port of the control port, of a server that every test of this binary shares.
fn server() -> &'static str {
    static SERVER: OnceLock<String> = OnceLock::new();
    SERVER.get_or_init(|| {
        let mut process = Command::new("mockbroker")
            .args(["serve", "--no-cluster", "--control", "127.0.0.1:0", "--exit-on-stdin-eof"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("mockbroker is on PATH");
        let mut first = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut first)
            .expect("a first line");
        // The server ends when its standard input closes, which is when this process ends.
        std::mem::forget(process.stdin.take());
        text_of(&first, "control").replace("http://", "")
    })
}

/// A running cluster, which ends when this is dropped.
pub struct Mock {
    cluster: String,
    pub bootstrap: Vec<String>,
}

impl Mock {
    /// Starts a cluster with these options of `POST /clusters`, as JSON.
    pub fn start(options: &str) -> Mock {
        let answer = send("POST", "/clusters?timeout=1m", options);
        Mock {
            cluster: format!("/clusters/{}", text_of(&answer, "id")),
            bootstrap: text_of(&answer, "bootstrap").split(',').map(String::from).collect(),
        }
    }

    /// One request to the control port of the cluster; panics unless it succeeds.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> String {
        send(method, &format!("{}{path}", self.cluster), body)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.ask("GET", "/journal?last=200", ""));
        }
        self.ask("DELETE", "", "");
    }
}

fn send(method: &str, path: &str, body: &str) -> String {
    let mut stream = connect(server());
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        server(),
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    assert!(head.starts_with("HTTP/1.1 20"), "{method} {path}: {body}");
    body.to_string()
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// The text of a member, where the name is there once and the text has no quotes in it.
fn text_of<'a>(json: &'a str, name: &str) -> &'a str {
    let member = format!("\"{name}\": \"");
    let start = json.find(&member).expect(name) + member.len();
    &json[start..start + json[start..].find('"').unwrap()]
}

/// A request of Kafka's without a body: key, version, correlation id, client id.
fn request(stream: &mut TcpStream, key: u16, correlation_id: u32, client_id: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(key.to_be_bytes());
    frame.extend(0u16.to_be_bytes());
    frame.extend(correlation_id.to_be_bytes());
    frame.extend((client_id.len() as u16).to_be_bytes());
    frame.extend(client_id.as_bytes());
    stream.write_all(&(frame.len() as u32).to_be_bytes()).unwrap();
    stream.write_all(&frame).unwrap();
    let mut size = [0; 4];
    stream.read_exact(&mut size).unwrap();
    let mut answer = vec![0; u32::from_be_bytes(size) as usize];
    stream.read_exact(&mut answer).unwrap();
    answer
}

const API_VERSIONS: u16 = 18;

#[test]
fn a_broker_that_fails_once() {
    let mock = Mock::start(r#"{"topics": ["foo:1:3"]}"#);
    let rule = r#"{"name": "busy", "api": "ApiVersions", "error": "COORDINATOR_LOAD_IN_PROGRESS", "times": 1}"#;
    mock.ask("POST", "/faults", rule);

    let mut stream = connect(&mock.bootstrap[0]);
    let refused = request(&mut stream, API_VERSIONS, 7, "recipe");
    assert_eq!(refused[..6], [0, 0, 0, 7, 0, 14]); // the correlation id, then the error code
    let answered = request(&mut stream, API_VERSIONS, 8, "recipe");
    assert_eq!(answered[..6], [0, 0, 0, 8, 0, 0]);

    // What was recorded: two requests, of which one hit the rule.
    let found = mock.ask("GET", "/journal/wait?api=ApiVersions&count=2&client_id=recipe", "");
    assert_eq!(found.matches(r#""sequence""#).count(), 2, "{found}");
}

#[test]
fn a_replica_that_falls_behind() {
    let mock = Mock::start(r#"{"topics": ["foo=1,2,3"], "brokers": 4}"#);
    mock.ask("POST", "/leave-isr", r#"{"partition": "foo-0", "broker": 3}"#);
    assert!(mock.ask("GET", "/state", "").contains(r#""isr": [1, 2]"#));
}
