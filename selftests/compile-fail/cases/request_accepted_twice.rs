// SPDX-License-Identifier: GPL-2.0

//! Two connections on one CM id.

use crate::cm::pending::ConnId;
use crate::kern::context::Sleepable;
use crate::svc::xprt::Xprt;
use crate::transport::accept::accept;
use crate::transport::listener::Listener;

fn misuse(id: ConnId, listener: &Xprt<Listener>, context: &Sleepable) {
    let _ = accept(id, listener, context);
    //~ E0382 use of moved value: `id`
    //=
    let _ = accept(id, listener, context);
}
