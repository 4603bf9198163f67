//! Times the crate kafka-protocol at its parent's pace: the protocol is that of
//! `benchmarks/worker.py`. The clock is the process's processor time.

use std::env;
use std::fs;
use std::hint::black_box;
use std::io::{self, BufRead, Write};

use bytes::{Bytes, BytesMut};

/// One release of the crate on one message: each release has traits of its own.
macro_rules! serve {
    ($release:ident, $text:literal, $message:ident, $version:expr, $body:expr) => {{
        use $release::messages::$message;
        use $release::protocol::{Decodable, Encodable};

        let (version, body): (i16, Bytes) = ($version, $body);
        // Strings stay slices of the body: taking another reference to it is part of the call.
        let decode = || $message::decode(&mut body.clone(), version).expect("decodes");
        let message = decode();
        let encode = |buffer: &mut BytesMut| message.encode(buffer, version).expect("encodes");
        // A new buffer each time, as large as will be needed: no growing, and no reuse either.
        let sized = || {
            let mut buffer = BytesMut::with_capacity(body.len());
            encode(&mut buffer);
            buffer
        };
        let grown = || {
            let mut buffer = BytesMut::new();
            encode(&mut buffer);
            buffer
        };
        assert!(
            sized() == body,
            "{} does not round-trip",
            stringify!($message)
        );
        let mut kept = sized();
        answer(
            concat!("kafka-protocol ", $text),
            |operation, loops| match operation {
                "decode" => (0..loops).for_each(|_| drop(black_box(decode()))),
                "encode" => (0..loops).for_each(|_| drop(black_box(sized()))),
                "encode-grown" => (0..loops).for_each(|_| drop(black_box(grown()))),
                "encode-reused" => (0..loops).for_each(|_| {
                    kept.clear();
                    encode(&mut kept);
                    black_box(&kept);
                }),
                _ => panic!("no operation {operation}"),
            },
        )
    }};
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().collect();
    let [_, name, version, file] = arguments.as_slice() else {
        panic!("usage: MESSAGE VERSION FILE");
    };
    let version: i16 = version.parse().expect("a version is a number");
    let body = Bytes::from(fs::read(file)?);
    match name.as_str() {
        "ApiVersionsResponse" => {
            serve!(kafka_protocol, "0.18.0", ApiVersionsResponse, version, body)
        }
        "MetadataResponse" => serve!(kafka_protocol, "0.18.0", MetadataResponse, version, body),
        "AlterPartitionReassignmentsRequest" => {
            serve!(
                kafka_protocol,
                "0.18.0",
                AlterPartitionReassignmentsRequest,
                version,
                body
            )
        }
        "LeaderAndIsrRequest" => {
            serve!(
                kafka_protocol_old,
                "0.15.1",
                LeaderAndIsrRequest,
                version,
                body
            )
        }
        "HeartbeatRequest" => serve!(kafka_protocol, "0.18.0", HeartbeatRequest, version, body),
        _ => panic!("no message {name}"),
    }
}

fn answer(release: &str, mut run: impl FnMut(&str, u64)) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{release}")?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (operation, loops) = line.split_once(' ').expect("an operation and a number");
        let loops: u64 = loops.parse().expect("how many calls is a number");
        let began = processor_time();
        run(operation, loops);
        let taken = processor_time() - began;
        writeln!(out, "{}", taken as f64 / loops as f64)?;
        out.flush()?;
    }
    Ok(())
}

/// That of the whole process, in nanoseconds.
fn processor_time() -> i64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of this frame.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    assert!(failed == 0, "no clock of processor time");
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
