// SPDX-License-Identifier: GPL-2.0

//! A borrowed socket address of the Internet families.
//!
//! C header: [`include/linux/socket.h`](srctree/include/linux/socket.h)

use crate::ffi;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    fmt,
    prelude::*, //
};

/// An IPv4 or IPv6 address with port.
///
/// # Invariants
///
/// `ptr` points to a `sockaddr_in` or `sockaddr_in6`, as its family says, for all of `'a`.
#[derive(Clone, Copy)]
pub(crate) struct SockAddr<'a> {
    ptr: NonNull<ffi::sockaddr>,
    _lifetime: PhantomData<&'a ffi::sockaddr>,
}

impl<'a> SockAddr<'a> {
    /// Borrows an address.
    ///
    /// # Errors
    ///
    /// `EAFNOSUPPORT` when the family is neither `AF_INET` nor `AF_INET6`.
    ///
    /// # Safety
    ///
    /// `ptr` points to an initialized address of its family that nobody changes during `'a`.
    pub(crate) unsafe fn from_raw(ptr: *const ffi::sockaddr) -> Result<Self> {
        let ptr = NonNull::new(ptr.cast_mut()).ok_or(EINVAL)?;
        // SAFETY: Initialized by the caller's promise; the family is its first member.
        let len = unsafe { ffi::svcrs_sockaddr_len(ptr.as_ptr()) };
        if len == 0 {
            return Err(EAFNOSUPPORT);
        }
        // INVARIANT: The family was just found to be one of the two.
        Ok(Self {
            ptr,
            _lifetime: PhantomData,
        })
    }

    /// The C address.
    pub(crate) fn as_ptr(self) -> *mut ffi::sockaddr {
        self.ptr.as_ptr()
    }

    /// Whether the address is IPv6.
    pub(crate) fn is_ipv6(self) -> bool {
        // SAFETY: Initialized by the type invariant.
        let family = unsafe { (*self.ptr.as_ptr()).sa_family };
        u32::from(family) == ffi::AF_INET6
    }
}

impl fmt::Display for SockAddr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; 64];
        // SAFETY: The address is valid by the type invariant, and the buffer is as long as said.
        let len = unsafe {
            ffi::svcrs_sockaddr_print(self.as_ptr(), text.as_mut_ptr().cast(), text.len())
        };
        let len = usize::try_from(len).unwrap_or(0);
        let text = text.get(..len).unwrap_or(&[]);
        f.write_str(core::str::from_utf8(text).unwrap_or("?"))
    }
}
