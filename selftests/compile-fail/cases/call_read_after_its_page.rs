// SPDX-License-Identifier: GPL-2.0

//! The transport header is read in a page that sunrpc owns already.

use crate::kern::page::PrivatePage;
use crate::proto;
use crate::svc::rqst::CallPages;
use crate::svc::rqst::Rqst;
use crate::svc::xprt::Xprt;
use crate::transport::call::CallContext;
use crate::transport::connection::Connection;
use kernel::prelude::*;

fn misuse(
    conn: &Xprt<Connection>,
    rqst: &mut Rqst<Connection>,
    page: PrivatePage,
    other: PrivatePage,
    context: KBox<CallContext>,
) -> bool {
    let parsed = proto::parse(page.bytes(), conn.limits());
    let pages = |page| CallPages::Inline {
        page,
        call: 28..100,
    };
    //~ E0505 cannot move out of `page`
    //= let _ = rqst.install(pages(other), context, drop);
    let _ = rqst.install(pages(page), context, drop);
    matches!(parsed, Ok(proto::Ingress::Call(call)) if call.has_read_chunks())
}
