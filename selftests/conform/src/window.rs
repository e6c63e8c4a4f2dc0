// SPDX-License-Identifier: GPL-2.0
//! Memory windows of type 2: keys that a peer can invalidate.

use std::{io, mem, rc::Rc};

use verbs_sys as sys;

use crate::memory::{failed, Domain, Region};

pub struct Window {
    raw: *mut sys::ibv_mw,
    _domain: Rc<Domain>,
}

impl Window {
    pub fn new(domain: &Rc<Domain>) -> io::Result<Self> {
        // SAFETY: the domain exists as long as the window keeps it.
        let raw = unsafe { sys::ibv_alloc_mw(domain.0, sys::IBV_MW_TYPE_2) };
        if raw.is_null() {
            return Err(failed("ibv_alloc_mw"));
        }
        Ok(Self {
            raw,
            _domain: domain.clone(),
        })
    }

    /// The work request that binds it to a whole region, and the key it then has.
    pub fn bind(&self, region: &Region) -> (sys::ibv_send_wr, u32) {
        // SAFETY: zero is valid for all fields; the window exists.
        let (mut request, old): (sys::ibv_send_wr, u32) =
            unsafe { (mem::zeroed(), (*self.raw).rkey) };
        let key = old & !0xff | old.wrapping_add(1) & 0xff;
        request.opcode = sys::IBV_WR_BIND_MW;
        request.send_flags = sys::IBV_SEND_SIGNALED;
        request.__bindgen_anon_2.bind_mw = sys::ibv_send_wr__bindgen_ty_4__bindgen_ty_1 {
            mw: self.raw,
            rkey: key,
            bind_info: sys::ibv_mw_bind_info {
                mr: region.registration(),
                addr: region.address(),
                length: region.len() as u64,
                mw_access_flags: sys::IBV_ACCESS_REMOTE_READ | sys::IBV_ACCESS_REMOTE_WRITE,
            },
        };
        (request, key)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: allocated in new(), and its connection is at its end.
        unsafe { sys::ibv_dealloc_mw(self.raw) };
    }
}
