// SPDX-License-Identifier: GPL-2.0

//! A thread holds on to a call's memory while the call is handed over anew.

use crate::svc::rqst::CallPages;
use crate::svc::rqst::Rqst;
use crate::transport::call::CallContext;
use crate::transport::connection::Connection;
use kernel::prelude::*;

fn misuse(rqst: &mut Rqst<Connection>, pages: CallPages<'_>, new: KBox<CallContext>) -> bool {
    let old = rqst.call();
    //~ E0499 cannot borrow `*rqst` as mutable more than once
    //=
    let _ = rqst.install(pages, new, drop);
    old.is_some_and(|call| call.inv_rkey().is_some())
}
