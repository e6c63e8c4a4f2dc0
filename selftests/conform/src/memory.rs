// SPDX-License-Identifier: GPL-2.0
//! Protection domains, and memory that a server may read or write.

use std::{io, ops::Range, ptr, rc::Rc};

use verbs_sys as sys;

use crate::frame::Segment;

/// What surrounds the memory that a case advertises, and what fills it at first.
pub const CANARY: u8 = 0xa5;

/// Bytes of canary before and after each region.
pub const GUARD: usize = 64;

/// The last operating system error, with what failed.
pub fn failed(what: &str) -> io::Error {
    let error = io::Error::last_os_error();
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// A protection domain; regions keep it alive.
pub struct Domain(pub *mut sys::ibv_pd);

impl Domain {
    pub fn new(context: *mut sys::ibv_context) -> io::Result<Rc<Self>> {
        // SAFETY: the context is that of a device librdmacm has open.
        let pd = unsafe { sys::ibv_alloc_pd(context) };
        if pd.is_null() {
            Err(failed("ibv_alloc_pd"))
        } else {
            Ok(Rc::new(Self(pd)))
        }
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: allocated in new(); whatever uses it holds an Rc of it.
        unsafe { sys::ibv_dealloc_pd(self.0) };
    }
}

/// Who may access a region.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    ReadWrite,
    /// With windows on it.
    Windowed,
    ReadOnly,
    WriteOnly,
    Local,
    /// For a peer that gives all away.
    Open,
}

impl Access {
    fn flags(self) -> i32 {
        let local = sys::IBV_ACCESS_LOCAL_WRITE;
        let flags = match self {
            Self::ReadWrite => local | sys::IBV_ACCESS_REMOTE_READ | sys::IBV_ACCESS_REMOTE_WRITE,
            Self::Windowed => Self::ReadWrite.flags() as u32 | sys::IBV_ACCESS_MW_BIND,
            Self::ReadOnly => local | sys::IBV_ACCESS_REMOTE_READ,
            Self::WriteOnly => local | sys::IBV_ACCESS_REMOTE_WRITE,
            Self::Local => local,
            Self::Open => Self::ReadWrite.flags() as u32 | sys::IBV_ACCESS_REMOTE_ATOMIC,
        };
        flags as i32
    }
}

/// Registered memory of `len` bytes at a page offset of choice, canaries around
/// it. The registration covers the canaries too, so that a write beyond what was
/// advertised is seen instead of refused; see `exact`.
pub struct Region {
    buffer: Vec<u8>,
    start: usize,
    len: usize,
    registered: *mut sys::ibv_mr,
    pub key: u32,
    /// Keys of windows on it.
    pub windows: Vec<u32>,
    _domain: Rc<Domain>,
}

impl Region {
    pub fn new(
        domain: &Rc<Domain>,
        len: usize,
        access: Access,
        page_offset: usize,
    ) -> io::Result<Self> {
        Self::register(domain, len, access, page_offset, GUARD)
    }

    /// The registration covers exactly the bytes asked for: the device refuses the next one.
    pub fn exact(
        domain: &Rc<Domain>,
        len: usize,
        access: Access,
        page_offset: usize,
    ) -> io::Result<Self> {
        Self::register(domain, len, access, page_offset, 0)
    }

    fn register(
        domain: &Rc<Domain>,
        len: usize,
        access: Access,
        page_offset: usize,
        more: usize,
    ) -> io::Result<Self> {
        let buffer = vec![CANARY; len + 2 * GUARD + 8192 + page_offset];
        let aligned = (buffer.as_ptr() as usize + GUARD).next_multiple_of(4096) + page_offset;
        let start = aligned - buffer.as_ptr() as usize;
        let (first, size) = (start - more, len + 2 * more);
        // SAFETY: the range is inside the buffer, which outlives the registration
        // and is never moved or resized (a Vec's heap block stays when it moves).
        let registered = unsafe {
            let address = buffer.as_ptr().add(first).cast_mut().cast();
            sys::ibv_reg_mr(domain.0, address, size.max(1), access.flags())
        };
        if registered.is_null() {
            return Err(failed("ibv_reg_mr"));
        }
        // SAFETY: just made.
        let key = unsafe { (*registered).rkey };
        Ok(Self {
            buffer,
            start,
            len,
            registered,
            key,
            windows: Vec::new(),
            _domain: domain.clone(),
        })
    }

    pub fn address(&self) -> u64 {
        self.buffer.as_ptr() as u64 + self.start as u64
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn local_key(&self) -> u32 {
        // SAFETY: used only while registered.
        unsafe { (*self.registered).lkey }
    }

    pub fn registration(&self) -> *mut sys::ibv_mr {
        self.registered
    }

    pub fn has_key(&self, key: u32) -> bool {
        key == self.key || self.windows.contains(&key)
    }

    /// One segment over `len` bytes from `offset`.
    pub fn segment(&self, offset: usize, len: usize) -> Segment {
        Segment {
            handle: self.key,
            length: len as u32,
            offset: self.address() + offset as u64,
        }
    }

    pub fn fill(&mut self, offset: usize, data: &[u8]) {
        let from = self.start + offset;
        self.buffer[from..from + data.len()].copy_from_slice(data);
    }

    pub fn clear(&mut self) {
        self.buffer.fill(CANARY);
    }

    /// What the region holds now.
    pub fn bytes(&self, offset: usize, len: usize) -> Vec<u8> {
        let from = self.start + offset;
        assert!(from + len <= self.buffer.len());
        let mut out = vec![0; len];
        // SAFETY: inside the buffer. The device writes it behind the compiler's back,
        // but the buffer's address was given away, so nothing read before is reused.
        unsafe {
            let source = std::hint::black_box(self.buffer.as_ptr());
            ptr::copy_nonoverlapping(source.add(from), out.as_mut_ptr(), len);
        }
        out
    }

    /// The bytes that a remote range names, if it lies inside.
    pub fn at(&self, segment: &Segment) -> Option<Vec<u8>> {
        let offset = usize::try_from(segment.offset.checked_sub(self.address())?).ok()?;
        let len = segment.length as usize;
        (self.has_key(segment.handle) && offset.checked_add(len)? <= self.len)
            .then(|| self.bytes(offset, len))
    }

    /// As at(), with the canaries: a device lets a server write there.
    pub fn around(&self, segment: &Segment) -> Option<Vec<u8>> {
        self.has(segment)
            .then(|| self.snapshot()[self.range(segment)].to_vec())
    }

    /// Whether a segment is inside, the canaries included.
    pub fn has(&self, segment: &Segment) -> bool {
        self.has_key(segment.handle) && self.range(segment).len() == segment.length as usize
    }

    /// The first offset, relative to the region, at which it differs from `before`
    /// outside what these segments name.
    pub fn spoilt(&self, before: &[u8], writable: &[Segment]) -> Option<i64> {
        self.differs(&self.snapshot(), before, writable)
    }

    /// The same of what the region held at some time.
    pub fn differs(&self, now: &[u8], before: &[u8], writable: &[Segment]) -> Option<i64> {
        if now == before {
            return None;
        }
        let mut allowed = before.to_vec();
        for segment in writable {
            let range = self.range(segment);
            allowed[range.clone()].copy_from_slice(&now[range]);
        }
        let at = now.iter().zip(&allowed).position(|(is, may)| is != may)?;
        Some(at as i64 - GUARD as i64)
    }

    /// What a segment names of the region with its canaries; empty if it has another key.
    pub fn range(&self, segment: &Segment) -> Range<usize> {
        if !self.has_key(segment.handle) {
            return 0..0;
        }
        let size = (self.len + 2 * GUARD) as i128;
        let from = i128::from(segment.offset) - i128::from(self.address()) + GUARD as i128;
        let to = from + i128::from(segment.length);
        from.clamp(0, size) as usize..to.clamp(0, size) as usize
    }

    /// The region with both its canaries.
    pub fn snapshot(&self) -> Vec<u8> {
        let from = self.start - GUARD;
        let mut out = vec![0; self.len + 2 * GUARD];
        // SAFETY: as in bytes().
        unsafe {
            let source = std::hint::black_box(self.buffer.as_ptr());
            ptr::copy_nonoverlapping(source.add(from), out.as_mut_ptr(), out.len());
        }
        out
    }

    /// Withdraw the registration; the memory stays to be looked at.
    pub fn revoke(&mut self) {
        if !self.registered.is_null() {
            // SAFETY: registered and not yet withdrawn.
            unsafe { sys::ibv_dereg_mr(self.registered) };
            self.registered = ptr::null_mut();
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.revoke();
    }
}
