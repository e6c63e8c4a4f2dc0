// SPDX-License-Identifier: GPL-2.0
//! Evidence in words, for a reader: during a run (`--decode`), or from a file (`--decode-json`).

mod message;

use std::fs;

use serde_json::Value;

use self::message::{message, stream};
use crate::{
    frame::{hex, unhex},
    options::Options,
    private::Settings,
};

/// Bytes of a chunk's data that are shown.
const SHOWN: usize = 32;

/// One step of a case.
pub fn step(step: &Value) -> Vec<String> {
    if let Some(sent) = step["sent"].as_str() {
        let opcode = step["opcode"].as_str().unwrap_or("SEND");
        let mut out = traffic("sent by ", opcode, sent);
        out.extend(chunks("offers", &step["offered"]));
        return out;
    }
    if let Some(received) = step["received"].as_str() {
        return traffic("received", "", received);
    }
    if step["placed"].is_array() {
        return chunks("was given", &step["placed"]);
    }
    let others = step.as_object().into_iter().flatten();
    others
        .map(|(kind, value)| match value.as_str() {
            Some(text) => one_line(&format!("{kind}: {}{}", shorter(text), settings(text))),
            None => one_line(&format!("{kind}: {value}")),
        })
        .collect()
}

fn one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

fn indent(line: String) -> String {
    format!("  {line}")
}

fn traffic(what: &str, opcode: &str, text: &str) -> Vec<String> {
    let bytes = unhex(text);
    let head = format!("{what}{opcode}, {} bytes", bytes.len());
    let mut out = vec![one_line(&head)];
    // What goes to or comes from memory is no message.
    if opcode.is_empty() || opcode.starts_with("SEND") {
        out.extend(message(&bytes).into_iter().map(indent));
    } else {
        out.push(indent(hex(&bytes)));
    }
    out
}

/// What chunks have, and the RPC header where one is in them.
fn chunks(verb: &str, chunks: &Value) -> Vec<String> {
    let mut out = Vec::new();
    for chunk in chunks.as_array().into_iter().flatten() {
        let name = chunk["chunk"].as_str().unwrap_or_default();
        let title = match name.split_once(' ') {
            Some(("read", position)) => format!("Read chunk at position {position}"),
            Some(("write", number)) => format!("Write chunk {number}"),
            _ => "Reply chunk".into(),
        };
        let Some(data) = chunk["bytes"].as_str().map(unhex) else {
            out.push(one_line(&format!("{title} is no memory of the case's")));
            continue;
        };
        let len = chunk["length"].as_u64().unwrap_or_default() as usize;
        let shown = hex(&data[..data.len().min(SHOWN)]);
        let more = if len > SHOWN { " ..." } else { "" };
        out.push(one_line(&format!(
            "{title} {verb} {len} bytes: {shown}{more}"
        )));
        if matches!(name, "read 0" | "reply") && len > 0 {
            out.extend(stream(&data, len).into_iter().map(indent));
        }
    }
    out
}

/// Connection managers fill private data up.
fn shorter(text: &str) -> String {
    match text.trim_end_matches(" 00000000") {
        short if short.len() < text.len() => format!("{short} and zeros"),
        same => same.into(),
    }
}

/// What private data say (RFC 8797).
fn settings(text: &str) -> String {
    let Some((_, data)) = text.split_once("private data ") else {
        return String::new();
    };
    match Settings::find(&unhex(data)) {
        Some(says) => format!(
            " (sends up to {} bytes, takes up to {}, {} a Send with Invalidate)",
            Settings::bytes(says.send),
            Settings::bytes(says.receive),
            if says.flags & 1 != 0 {
                "takes"
            } else {
                "does not take"
            }
        ),
        None => " (says nothing that RFC 8797 knows)".into(),
    }
}

/// What a file that `--json` has written says of the cases that are chosen.
pub fn file(path: &str, options: &Options) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let read = serde_json::from_str(&text).map_err(|e| e.to_string());
    let words = read.and_then(|read| report(&read, options));
    words.map_err(|e| format!("{path}: {e}"))
}

fn report(report: &Value, options: &Options) -> Result<String, String> {
    let list = |of: &Value, name: &str| of[name].as_array().cloned().unwrap_or_default();
    let field = |of: &Value, name: &str| one_line(of[name].as_str().unwrap_or_default());
    let (cases, failures) = (list(report, "cases"), list(report, "failures"));
    if !report["cases"].is_array() && !report["failures"].is_array() {
        return Err("no evidence of cases or of --fuzz".into());
    }
    let mut out = vec![format!(
        "server {}, seed {}",
        field(report, "server"),
        report["seed"]
    )];
    let ids: Vec<_> = cases.iter().map(|case| field(case, "id")).collect();
    options.choose(&ids)?;
    for (case, id) in cases.iter().zip(&ids).filter(|(_, id)| options.selects(id)) {
        out.push(String::new());
        out.push(format!(
            "{id} {}: {}",
            field(case, "sends"),
            field(case, "seen")
        ));
        if case["reason"].is_string() {
            out.push(format!("  wrong: {}", field(case, "reason")));
        }
        out.extend(list(case, "evidence").iter().flat_map(step).map(indent));
    }
    for failure in &failures {
        out.push(String::new());
        out.push(format!("wrong: {}", field(failure, "reason")));
        for way in ["sent", "received"] {
            let messages = list(failure, way);
            let texts = messages.iter().filter_map(Value::as_str);
            out.extend(texts.flat_map(|text| traffic(way, "", text)).map(indent));
        }
    }
    Ok(out.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_sent_to_memory_is_no_message() {
        let lines = step(&json!({ "sent": "00000001", "opcode": "RDMA_WRITE to 0x1 0x2" }));
        assert_eq!(
            lines,
            ["sent by RDMA_WRITE to 0x1 0x2, 4 bytes", "  00000001"]
        );
    }

    #[test]
    fn private_data() {
        let said = |text: &str| step(&json!({ "cm": text })).remove(0);
        let right = said("connect, private data f6ab0e18 01010303 00000000 00000000");
        assert!(right.starts_with("cm: connect, private data f6ab0e18 01010303 and zeros (sends "));
        assert!(right
            .ends_with("(sends up to 4096 bytes, takes up to 4096, takes a Send with Invalidate)"));
        assert!(said("established, private data ").ends_with("(says nothing that RFC 8797 knows)"));
        assert_eq!(said("disconnected"), "cm: disconnected");
    }

    #[test]
    fn chunks_with_a_header_and_without() {
        let reply = "00000009 00000001 00000000 00000000 00000000 00000000";
        let lines = step(&json!({ "placed": [
            { "chunk": "write 0", "length": 40, "bytes": "00".repeat(40) },
            { "chunk": "reply", "length": 24, "bytes": reply },
            { "chunk": "reply", "segments": [], "bytes": null },
        ]}));
        assert!(lines[0].starts_with("Write chunk 0 was given 40 bytes: 00000000 "));
        assert!(lines[0].ends_with(" ..."));
        assert_eq!(lines[1], format!("Reply chunk was given 24 bytes: {reply}"));
        assert!(lines[2].ends_with("SUCCESS, 0 bytes of results"));
        assert_eq!(lines[3], "Reply chunk is no memory of the case's");
    }

    #[test]
    fn evidence_that_is_none() {
        for odd in [json!(null), json!(7), json!([1]), json!({})] {
            assert!(step(&odd).is_empty());
        }
        assert_eq!(step(&json!({ "sent": "0" }))[0], "sent by SEND, 0 bytes");
        assert_eq!(step(&json!({ "cm": 7 })), ["cm: 7"]);
        assert_eq!(step(&json!({ "cm": "a\nb" })), ["cm: a b"]);
    }
    #[test]
    fn reports() {
        let options =
            |line: &str| Options::read(lexopt::Parser::from_args(line.split(' '))).unwrap();
        let cases = json!({ "server": "a", "seed": 1, "cases": [
            { "id": "R1", "sends": "x", "seen": "OK", "evidence": [{ "cm": "disconnected" }] },
            { "id": "R2", "sends": "y", "seen": "HANG", "reason": "HANG, accepted: OK", "evidence": 7 },
        ]});
        let words = report(&cases, &options("--decode-json f")).unwrap();
        let expected = "server a, seed 1\n\nR1 x: OK\n  cm: disconnected\n\nR2 y: HANG\n  wrong: HANG, accepted: OK\n";
        assert_eq!(words, expected);
        let words = report(&cases, &options("--decode-json f --only R2")).unwrap();
        assert!(!words.contains("R1") && words.contains("R2"));
        assert!(report(&cases, &options("--decode-json f --only R3")).is_err());
        let fuzz =
            json!({ "failures": [{ "reason": "z", "sent": ["00000007"], "received": [3] }] });
        let words = report(&fuzz, &options("--decode-json f")).unwrap();
        assert!(words.contains(
            "wrong: z\n  sent, 4 bytes\n    XID 0x00000007\n    breaks at byte 4: version: "
        ));
        assert!(report(&json!([]), &options("--decode-json f")).is_err());
    }
}
