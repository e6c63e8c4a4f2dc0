// SPDX-License-Identifier: GPL-2.0

//! A reply page may be one of an exported file's page cache: it is not written without a check.

use crate::kern::page::PrivatePage;
use crate::kern::page::SharedPage;

fn misuse(page: SharedPage) -> Result<PrivatePage, SharedPage> {
    //~ E0423 cannot initialize a tuple struct which contains private fields
    //= page.try_into_private()
    Ok(PrivatePage(page))
}
