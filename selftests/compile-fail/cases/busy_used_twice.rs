// SPDX-License-Identifier: GPL-2.0

//! The next thread is let in twice.

use crate::svc::connection::Busy;
use crate::transport::connection::Connection;

fn misuse(busy: Busy<'_, Connection>) {
    busy.release();
    //~ E0382 use of moved value: `busy`
    //=
    busy.release();
}
