// SPDX-License-Identifier: GPL-2.0

//! The reply is read in the thread's pages after they have been taken from it.

use crate::kern::page::PrivatePage;
use crate::kern::page::SharedPage;
use crate::svc::rqst::Rqst;
use crate::transport::connection::Connection;
use kernel::prelude::*;

fn misuse(
    rqst: &mut Rqst<Connection>,
    list: KVec<SharedPage>,
    spare: &mut KVec<PrivatePage>,
) -> u32 {
    let (_, reply) = rqst.call_and_reply();
    //~ E0499 cannot borrow `*rqst` as mutable more than once at a time
    //=
    let _ = rqst.take_reply(list, spare);
    reply.len()
}
