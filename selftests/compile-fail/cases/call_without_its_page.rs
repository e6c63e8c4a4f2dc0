// SPDX-License-Identifier: GPL-2.0

//! A call is given to sunrpc without the page it is in.

use crate::kern::page::PrivatePage;
use crate::svc::rqst::CallPages;

fn misuse(page: PrivatePage) -> CallPages<'static> {
    //~ E0063 missing field `page`
    //= CallPages::Inline { page, call: 28..100 }
    CallPages::Inline { call: 28..100 }
}
