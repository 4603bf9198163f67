// A Rust test against a mock Kafka cluster, with nothing but the standard library: copy Mock into
// your tests, and put your client where this one speaks for itself.
//
// Needs `mockbroker` on PATH (docs/how-to/install.md). As it stands:
//
//   rustc --edition 2021 --test mock.rs && ./mock
//
// With serde_json and an HTTP client at hand, `ask` and `text_of` are what those do better.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running cluster. It ends when this is dropped, and with this process in any case.
pub struct Mock {
    process: Child,
    control: String,
    pub bootstrap: Vec<String>,
}

impl Mock {
    pub fn serve(options: &[&str]) -> Mock {
        let mut process = Command::new("mockbroker")
            .args(["serve", "--control", "127.0.0.1:0", "--exit-with-parent"])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("mockbroker is on PATH");
        // The first line comes when every broker listens.
        let mut first = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut first)
            .expect("a first line");
        let bootstrap = text_of(&first, "bootstrap").split(',').map(String::from).collect();
        let control = text_of(&first, "control").replace("http://", "");
        Mock { process, control, bootstrap }
    }

    /// One request to the control port; panics unless it goes well.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = connect(&self.control);
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.control,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        assert!(head.starts_with("HTTP/1.1 20"), "{method} {path}: {body}");
        body.to_string()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
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

#[test]
fn a_broker_that_fails_once() {
    const API_VERSIONS: u16 = 18;
    let mock = Mock::serve(&["--brokers", "4", "--topic", "foo=1,2,3"]);
    mock.ask(
        "POST",
        "/faults",
        r#"{"name": "busy", "api": "ApiVersions", "error": "COORDINATOR_LOAD_IN_PROGRESS", "times": 1}"#,
    );

    let mut stream = connect(&mock.bootstrap[0]);
    let refused = request(&mut stream, API_VERSIONS, 7, "recipe");
    assert_eq!(refused[..6], [0, 0, 0, 7, 0, 14]); // the correlation id, then the error code
    let answered = request(&mut stream, API_VERSIONS, 8, "recipe");
    assert_eq!(answered[..6], [0, 0, 0, 8, 0, 0]);

    // A step: broker 3 falls behind.
    mock.ask("POST", "/leave-isr", r#"{"partition": "foo-0", "broker": 3}"#);
    assert!(mock.ask("GET", "/state", "").contains(r#""isr": [1, 2]"#));

    // What was said on the wire: two requests, of which one ran into the rule.
    mock.ask("GET", "/faults/busy/wait?hits=1", "");
    let said = mock.ask("GET", "/journal?api=18&direction=request&client_id=recipe", "");
    assert_eq!(said.matches(r#""sequence""#).count(), 2, "{said}");
}
