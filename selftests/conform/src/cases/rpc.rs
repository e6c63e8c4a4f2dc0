// SPDX-License-Identifier: GPL-2.0
//! Group K: the RPC layer through a good transport header (M183 to M187).

use crate::{
    bench::Bench,
    case::{check, full, Case},
    explain::Seen,
    frame::{total, words, Lists},
    message::Message,
    outcome::{Outcome, CLOSE, OK, RPCERR},
    rpc::{Call, Kind, Status, NFS},
};

/// A call that RPC has to refuse, and how.
struct Wrong {
    id: &'static str,
    rfc: &'static str,
    sends: &'static str,
    call: fn() -> Call,
    right: fn(&Status) -> bool,
}

fn with(change: impl Fn(&mut Call)) -> Call {
    let mut call = Call::null();
    change(&mut call);
    call
}

/// A credential of a flavor and a body, an empty verifier.
fn credential(flavor: u32, claimed: u32, body: &[u8]) -> Vec<u8> {
    let mut out = words(&[flavor, claimed]);
    out.extend_from_slice(body);
    out.extend(words(&[0, 0]));
    out
}

const WRONG: [Wrong; 12] = [
    Wrong {
        id: "M183",
        rfc: "5531 9",
        sends: "RPC version 3",
        call: || with(|c| c.rpcvers = 3),
        right: |s| matches!(s, Status::RpcMismatch(2, 2)),
    },
    Wrong {
        id: "M183b",
        rfc: "5531 9",
        sends: "RPC version 0",
        call: || with(|c| c.rpcvers = 0),
        right: |s| matches!(s, Status::RpcMismatch(2, 2)),
    },
    Wrong {
        id: "M184a",
        rfc: "5531 9",
        sends: "unknown program",
        call: || with(|c| c.prog = 0x2fff_0001),
        right: |s| matches!(s, Status::Accepted(1, None)),
    },
    Wrong {
        id: "M184b",
        rfc: "5531 9",
        sends: "NFS version 9",
        call: || with(|c| c.vers = 9),
        right: |s| matches!(s, Status::Accepted(2, Some((low, high))) if *low <= 4 && *high >= 3),
    },
    Wrong {
        id: "M184c",
        rfc: "5531 9",
        sends: "unknown NFSv3 procedure",
        call: || with(|c| c.proc = 99),
        right: |s| matches!(s, Status::Accepted(3, None)),
    },
    Wrong {
        id: "M184d",
        rfc: "5531 9",
        sends: "procedure 0xffffffff",
        call: || with(|c| c.proc = u32::MAX),
        right: |s| matches!(s, Status::Accepted(3, None)),
    },
    Wrong {
        id: "M185a",
        rfc: "5531 9",
        sends: "a credential of 404 bytes",
        call: || with(|c| c.auth = credential(1, 404, &[0; 404])),
        right: refused,
    },
    Wrong {
        id: "M185b",
        rfc: "5531 9",
        sends: "a credential that claims 0xffffffff bytes",
        call: || with(|c| c.auth = credential(1, u32::MAX, &[0; 16])),
        right: refused,
    },
    Wrong {
        id: "M185c",
        rfc: "5531 9",
        sends: "AUTH_SYS with 0xffffffff groups",
        call: || with(|c| c.auth = credential(1, 24, &words(&[0, 1, 0x6300_0000, 0, 0, u32::MAX]))),
        right: refused,
    },
    Wrong {
        id: "M185d",
        rfc: "5531 9",
        sends: "an unknown flavor",
        call: || with(|c| c.auth = credential(0x1234, 4, &[0; 4])),
        right: refused,
    },
    Wrong {
        id: "M186a",
        rfc: "2203 5.3.3",
        sends: "RPCSEC_GSS, a credential of noise",
        call: || with(|c| c.auth = credential(6, 20, &[0x5c; 20])),
        right: refused,
    },
    Wrong {
        id: "M186b",
        rfc: "2203 5.3.3",
        sends: "RPCSEC_GSS, data for a context that is not",
        call: || {
            with(|c| {
                c.proc = 1;
                c.auth = credential(6, 24, &words(&[1, 0, 7, 1, 4, 0x1234_5678]));
            })
        },
        right: refused,
    },
];

/// AUTH_ERROR, or the arguments could not be read.
fn refused(status: &Status) -> bool {
    matches!(status, Status::AuthError(_) | Status::Accepted(4, None))
}

fn judge(wrong: &Wrong, seen: &Seen) -> Result<(), String> {
    let status = seen.status.as_ref();
    check(
        seen.outcome != Outcome::RpcError || status.is_some_and(wrong.right),
        || format!("{status:?}"),
    )
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for wrong in &WRONG {
        let lists: [(&str, &str, fn(&mut Bench<'_>) -> Result<Lists, String>); 3] = [
            ("", "", |_| Ok(Lists::default())),
            ("w", ", with a Write chunk", |b| {
                Ok(Lists::write(b.chunk(&[512, 512])?))
            }),
            ("y", ", with a Reply chunk", |b| {
                Ok(Lists::reply(b.chunk(&[40, 1000])?))
            }),
        ];
        for (suffix, also, make) in lists {
            let id = if suffix.is_empty() {
                wrong.id.to_string()
            } else {
                format!("M187.{}{suffix}", &wrong.id[1..])
            };
            // A server may drop the connection of a client whose GSS context it does not know.
            let accept = match wrong.id {
                "M185a" => RPCERR | OK,
                id if id.starts_with("M186") => RPCERR | CLOSE,
                _ => RPCERR,
            };
            cases.push(full(
                id,
                wrong.rfc,
                format!("{}{also}", wrong.sends),
                accept,
                move |b| {
                    let call = b.number((wrong.call)());
                    let lists = make(b)?;
                    let seen = b.ask(&Message::inline(&call, lists))?;
                    judge(wrong, &seen)?;
                    if seen.outcome == Outcome::Ok {
                        // What the server's RPC layer lets pass over TCP is not the transport's to refuse.
                        let over_tcp = b
                            .world
                            .tcp
                            .exchange(&call.encode())
                            .map_err(|e| format!("over TCP: {e}"))?;
                        check(over_tcp == seen.stream, || "over TCP it is refused".into())?;
                    }
                    check(seen.lists.writes.iter().all(|c| total(c) == 0), || {
                        "a Write chunk was used for an error".into()
                    })?;
                    Ok(seen)
                },
            ));
        }
    }
    cases.push(full("K1", "5531 9", "NULL of NFS version 4", OK, |b| {
        let call = b.number(Call::new(NFS, 4, 0, Kind::Null, Vec::new()));
        b.ask(&Message::inline(&call, Lists::default()))
    }));
    cases.push(full(
        "K2",
        "5531 9",
        "GETATTR with a file handle cut short: GARBAGE_ARGS",
        RPCERR,
        |b| {
            let mut call = crate::nfs3::getattr(&b.world.files.root.clone());
            call.args.truncate(call.args.len() - 4);
            let call = b.number(call);
            let seen = b.ask(&Message::inline(&call, Lists::default()))?;
            check(seen.status == Some(Status::Accepted(4, None)), || {
                format!("{:?}", seen.status)
            })?;
            Ok(seen)
        },
    ));
    cases
}
