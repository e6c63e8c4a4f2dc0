// SPDX-License-Identifier: GPL-2.0
//! Which options go together, and which cases they choose.

use super::*;

fn read(line: &str) -> Options {
    Options::read(lexopt::Parser::from_args(line.split_whitespace())).unwrap()
}

fn wrong(line: &str) -> String {
    let text = read(line).check().expect_err(line);
    text.lines().next().unwrap_or_default().into()
}

const SERVER: &str = "--server 192.0.2.1 --export /srv";

#[test]
fn every_option_belongs_to_a_mode() {
    let all = MEANT.iter().map(|(name, _)| *name);
    for name in all.chain(MODES.iter().map(|(name, _)| *name)) {
        assert!(USAGE.contains(&format!("  --{name} ")), "{name}");
    }
    for line in USAGE.lines().filter_map(|line| line.strip_prefix("  --")) {
        let name = line.split(' ').next().unwrap();
        let known = MEANT.iter().any(|(n, _)| *n == name) || MODES.iter().any(|(n, _)| *n == name);
        assert!(known, "{name}");
    }
}

#[test]
fn what_a_mode_does_not_look_at() {
    for option in [
        "--sample 5",
        "--large",
        "--expected f",
        "--fuzz-from 1",
        "--jobs 2",
    ] {
        let text = wrong(&format!("{SERVER} {option}"));
        assert!(text.contains("means nothing without --"), "{text}");
    }
    for option in [
        "--only R2",
        "--gss s",
        "--hooks f",
        "--json f",
        "--corpus f",
        "--decode",
    ] {
        let text = wrong(&format!("{SERVER} --sweep {option}"));
        assert!(text.ends_with("means nothing with --sweep"), "{text}");
    }
    assert_eq!(
        wrong(&format!("{SERVER} --fuzz 1 --profile f")),
        "--profile means nothing with --fuzz"
    );
    assert_eq!(wrong("--list --json f"), "--json means nothing with --list");
    assert_eq!(
        wrong(&format!("{SERVER} --fuzz 1 --sweep")),
        "--fuzz and --sweep exclude each other"
    );
    assert_eq!(
        wrong(&format!("{SERVER} --sweep --large --sample 1")),
        "--sample means nothing with --large"
    );
}

#[test]
fn what_is_missing() {
    assert_eq!(wrong(""), "no --server");
    assert_eq!(wrong("--server 192.0.2.1"), "no --export");
    assert_eq!(wrong("--fake pad"), "no --server");
    for right in [
        "--list --only R2",
        "--decode-json f",
        "--fake pad --server 192.0.2.1 --port 7",
    ] {
        assert_eq!(read(right).check(), Ok(()));
    }
    // What the tests in machines say.
    for right in [
        "--json f --profile f --hooks f --corpus f --gss s --idle 1 --repeat 2 --only R2 --decode",
        "--profile f --sweep --expected f --sample 4096",
        "--profile f --sweep --expected f --large",
        "--json f --fuzz 5 --fuzz-from 5 --seed 2",
    ] {
        assert_eq!(read(&format!("{SERVER} --port 7 {right}")).check(), Ok(()));
    }
}

#[test]
fn patterns() {
    let ids = ["M116", "M117b", "M118", "C1", "C01", "R2"].map(String::from);
    let chosen = |options: &str| {
        let options = read(options);
        options.choose(&ids).map(|()| {
            let chosen = ids.iter().filter(|id| options.selects(id));
            chosen.map(String::as_str).collect::<Vec<_>>().join(" ")
        })
    };
    assert_eq!(chosen("").unwrap(), ids.join(" "));
    assert_eq!(chosen("--only M117..M118,C1").unwrap(), "M117b M118 C1");
    assert_eq!(chosen("--only M* --except M118").unwrap(), "M116 M117b");
    for none in [
        "m116",
        "TYPO",
        "M118..M116",
        "M116..",
        "..M118",
        "",
        "R2,",
        "R2,X*",
        "R",
    ] {
        for name in ["only", "except"] {
            let pattern = none.rsplit(',').next().unwrap();
            let text = chosen(&format!("--{name}={none}")).expect_err(none);
            assert!(
                text.starts_with(&format!("--{name}: {pattern:?} matches no case")),
                "{text}"
            );
        }
    }
    assert!(chosen("--only R2 --except R2")
        .unwrap_err()
        .contains("leave no case"));
    let blank = Options::read(lexopt::Parser::from_args(["--only", "R2, C1"])).unwrap();
    assert_eq!(blank.only, ["R2", "C1"]);
}

#[test]
fn names_and_addresses() {
    let address = |server: &str| read(&format!("--server {server} --port 7")).address();
    assert_eq!(address("192.0.2.1").unwrap().to_string(), "192.0.2.1:7");
    assert_eq!(
        address("2001:db8::1").unwrap().to_string(),
        "[2001:db8::1]:7"
    );
    assert!(address("localhost").unwrap().ip().is_loopback());
    assert!(address("no.such.invalid")
        .unwrap_err()
        .starts_with("--server no.such.invalid: "));
}
