// SPDX-License-Identifier: GPL-2.0

//! The memory of a call is used after it went to sunrpc with the call.

use crate::svc::rqst::CallPages;
use crate::svc::rqst::Rqst;
use crate::transport::call::CallContext;
use crate::transport::connection::Connection;
use kernel::prelude::*;

fn misuse(rqst: &mut Rqst<Connection>, pages: CallPages<'_>, call: KBox<CallContext>) {
    let _ = rqst.install(pages, call, drop);
    //~ E0382 borrow of moved value: `call`
    //=
    let _ = call.fixed();
}
