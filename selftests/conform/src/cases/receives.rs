// SPDX-License-Identifier: GPL-2.0
//! Messages that get no reply, or an error, give their Receives back (H2, H3): three times as
//! many of them as the server has granted, then as many good calls as it has.

use super::{
    flow::{granted, wide, window},
    length::null,
};
use crate::{
    bench::Bench,
    case::{check, full, Case},
    explain::Seen,
    frame::{words, Header, Lists, MSG},
    message::Message,
    outcome::{Outcome, OK},
    rpc::{Call, Kind},
};

/// What is sent, over and over, and what has to come of each.
struct Spent {
    id: &'static str,
    rfc: &'static str,
    sends: &'static str,
    outcome: Outcome,
    make: fn(&mut Bench<'_>) -> Message,
}

const SPENT: [Spent; 8] = [
    Spent {
        id: "H2.runt",
        rfc: "8166 4.5",
        sends: "20 bytes of a NULL call",
        outcome: Outcome::Drop,
        make: |b| null(b).cut(20),
    },
    Spent {
        id: "H2.empty",
        rfc: "8166 4.5",
        sends: "Sends of length 0",
        outcome: Outcome::Drop,
        make: |_| Message::raw(Vec::new()),
    },
    Spent {
        id: "H2.done",
        rfc: "8166 4.6.2",
        sends: "RDMA_DONE",
        outcome: Outcome::Drop,
        make: |b| Message::words(b.xid(), 1, 3, &[0, 0, 0]).and(&[0; 40]),
    },
    Spent {
        id: "H2.error",
        rfc: "8166 4.2.4",
        sends: "RDMA_ERROR",
        outcome: Outcome::Drop,
        make: |b| Message::words(b.xid(), 1, 4, &[2, 0, 0]),
    },
    Spent {
        id: "H2.reply",
        rfc: "8166 4.5",
        sends: "RPC replies where no call was made",
        outcome: Outcome::Drop,
        make: |b| {
            let xid = b.xid();
            let header = Header::new(xid, MSG, Lists::default());
            Message::new(header, &words(&[xid, 1, 0, 0, 0, 0]), Kind::Null)
        },
    },
    Spent {
        id: "H3.chunk",
        rfc: "8166 4.5.2",
        sends: "procedure 5",
        outcome: Outcome::Chunk,
        make: |b| null(b).poke(12, 5),
    },
    Spent {
        id: "H3.list",
        rfc: "8166 4.5.2",
        sends: "Write list discriminator 2, an empty chunk after it",
        outcome: Outcome::Chunk,
        make: |b| {
            let lists = Lists::write(Vec::new());
            Message::inline(&b.number(Call::null()), lists).poke(20, 2)
        },
    },
    Spent {
        id: "H3.version",
        rfc: "8166 4.5.1",
        sends: "version 2",
        outcome: Outcome::Versions,
        make: |b| null(b).poke(4, 2),
    },
];

fn spend(b: &mut Bench<'_>, spent: &Spent) -> Result<Seen, String> {
    let grant = granted(b)?;
    b.reconnect(&wide(grant))?;
    b.must(Call::null())?;
    // Far from the grant, as a server may take a while until a Receive is posted again.
    let batch = (grant / 4).max(1);
    let mut count = 0;
    while count < 3 * grant {
        let mut sent: Vec<_> = (0..batch).map(|_| (spent.make)(b)).collect();
        let answered = spent.outcome != Outcome::Drop;
        if !answered {
            sent.iter().try_for_each(|m| b.post(m))?;
            count += batch;
            // Nothing but this may be answered.
            sent = vec![null(b)];
        } else {
            count += batch;
        }
        sent.iter().try_for_each(|m| b.post(m))?;
        let answers = b.answers(&sent, sent.len())?;
        let right = if answered { spent.outcome } else { Outcome::Ok };
        check(
            answers.end.is_none()
                && answers
                    .seen
                    .iter()
                    .all(|s| s.len() == 1 && s[0].outcome == right),
            || {
                format!(
                    "after {count}: {} answers, {:?}",
                    answers.count, answers.end
                )
            },
        )?;
        b.evidence.clear();
    }
    window(b, grant).map_err(|e| format!("after {count} of them: {e}"))?;
    let mut seen = b.succeed(Call::null())?;
    seen.note = format!("{count}, then {grant} calls at once");
    Ok(seen)
}

pub fn cases() -> Vec<Case> {
    SPENT
        .iter()
        .map(|spent| {
            let sends = format!("{}, three times as often as granted", spent.sends);
            full(spent.id, spent.rfc, sends, OK, |b| spend(b, spent))
        })
        .collect()
}
