// SPDX-License-Identifier: GPL-2.0

//! The registry holds no references: what it shows is gone once its lock is released.

use crate::svc::registry::Registry;
use crate::svc::xprt::Xprt;
use crate::transport::connection::Connection;

fn misuse(all: &Registry<Connection>) -> bool {
    let mut kept: Option<&Xprt<Connection>> = None;
    let _ = all.for_each(|conn| -> Result<(), ()> {
        //~ E0521 borrowed data escapes outside of closure
        //= let _ = conn;
        kept = Some(conn);
        Ok(())
    });
    kept.is_some()
}
