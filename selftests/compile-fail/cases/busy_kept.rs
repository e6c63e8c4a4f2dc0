// SPDX-License-Identifier: GPL-2.0

//! `recvfrom` returns and keeps the right to be alone.

use crate::svc::connection::Busy;
use crate::transport::connection::Connection;

fn keep(_: Busy<'static, Connection>) {}

fn misuse(busy: Busy<'_, Connection>) {
    //~ E0521 borrowed data escapes outside of function
    //= busy.release();
    keep(busy);
}
