// SPDX-License-Identifier: GPL-2.0

//! Unit tests of RDMA operations (what a device is told of memory, with an IOMMU and without) and of
//! Send Queue room.
//!
//! They need a machine with an IOMMU, which the debug kernel's test machines have.

use kernel::prelude::*;

#[kunit_tests(svcrdma_rs_rdma)]
#[allow(unsafe_op_in_unsafe_fn, reason = "what the macro makes")]
#[allow(clippy::undocumented_unsafe_blocks, reason = "what the macro makes")]
mod rdma {
    use crate::{
        ffi,
        ib::{
            chain::Opcode,
            client::DeviceGuard,
            pd::LocalKey,
            rdma::{
                Demand,
                Rdma,
                Room,
                Target, //
            }, //
        },
        kern::{
            context::Sleepable,
            lendable::Lendable,
            page::{
                PageRange,
                PrivatePage,
                PAGE_SIZE, //
            }, //
        }, //
    };
    use core::ptr::NonNull;
    use kernel::prelude::*;

    const PAGES: usize = 8;
    const MAX_SGE: u32 = 3;

    /// A device that maps memory and does nothing else.
    ///
    /// # Invariants
    ///
    /// The device is valid, and dropped after `guard`, the first of its guards.
    struct TestDevice {
        device: NonNull<ffi::ib_device>,
        guard: Option<DeviceGuard>,
    }

    impl TestDevice {
        fn new(iommu: bool) -> Result<Self> {
            // SAFETY: No preconditions.
            let device = unsafe { ffi::svcrs_kunit_device(iommu) };
            let device = NonNull::new(device).ok_or(ENODEV)?;
            // SAFETY: Valid until `drop`; each test drops what has a guard before.
            let guard = unsafe { DeviceGuard::of_test(device) }?;
            // INVARIANT: Just made.
            Ok(Self {
                device,
                guard: Some(guard),
            })
        }

        fn guard(&self) -> Result<&DeviceGuard> {
            self.guard.as_ref().ok_or(ENODEV)
        }

        /// The physical address behind one of the device's.
        fn phys(&self, addr: u64) -> u64 {
            // SAFETY: Valid by the type invariant.
            unsafe { ffi::svcrs_kunit_device_phys(self.device.as_ptr(), addr) }
        }
    }

    impl Drop for TestDevice {
        fn drop(&mut self) {
            self.guard = None;
            // SAFETY: Valid by the type invariant, and the last guard is gone.
            unsafe { ffi::svcrs_kunit_device_put(self.device.as_ptr()) };
        }
    }

    /// Pages with something unused in front of each byte range.
    struct Gaps(KVec<PrivatePage>);

    const GAP: usize = 256;
    const REST: usize = PAGE_SIZE - GAP;

    // SAFETY: As for a list of pages.
    unsafe impl Lendable for Gaps {
        fn range(&self, at: usize, max: usize) -> Option<PageRange<'_>> {
            let page = self.0.get(at / REST)?;
            Some(page.range(GAP + at % REST, max))
        }
    }

    fn context() -> Sleepable {
        // SAFETY: KUnit runs tests in a thread of its own.
        unsafe { Sleepable::assume() }
    }

    /// Pages no two of which are neighbours.
    fn scattered() -> Result<KVec<PrivatePage>> {
        let mut all = KVec::new();
        PrivatePage::alloc_many(&mut all, 4 * PAGES, &context())?;
        let mut pages = KVec::<PrivatePage>::with_capacity(PAGES, GFP_KERNEL)?;
        for page in all.drain_all() {
            let apart = pages
                .iter()
                .all(|other| page.address().addr().abs_diff(other.address().addr()) > PAGE_SIZE);
            if apart && pages.len() < PAGES {
                pages.push_within_capacity(page).map_err(|_| ENOMEM)?;
            }
        }
        if pages.len() < PAGES {
            return Err(ENOMEM);
        }
        Ok(pages)
    }

    fn physical_addresses(pages: &KVec<PrivatePage>) -> Result<KVec<u64>> {
        let mut list = KVec::with_capacity(pages.len(), GFP_KERNEL)?;
        for page in pages.iter() {
            // SAFETY: A page has an address in the linear mapping.
            let phys = unsafe { ffi::svcrs_kunit_phys(page.address().cast_const().cast()) };
            list.push_within_capacity(phys).map_err(|_| ENOMEM)?;
        }
        Ok(list)
    }

    fn begin<M: Lendable>(device: &TestDevice, opcode: Opcode, memory: M) -> Result<Rdma<M>> {
        let mut room = Room::new();
        room.reserve(Demand {
            work_requests: PAGES,
            sges: PAGES,
            windows: 0,
        })?;
        let target = Target {
            device: device.guard()?,
            lkey: LocalKey::of_no_device(7),
            max_sge: MAX_SGE,
            max_seg_size: 1 << 20,
        };
        Ok(Rdma::begin(opcode, &target, memory, room))
    }

    /// Scattered pages are one element behind an IOMMU, and out of its sight when given back.
    fn joined(opcode: Opcode) -> Result<bool> {
        const SKIP: usize = 100;
        let device = TestDevice::new(true)?;
        let pages = scattered()?;
        let phys = physical_addresses(&pages)?;
        let mut rdma = begin(&device, opcode, pages)?;
        let len = PAGES * PAGE_SIZE - SKIP - 4;
        rdma.transfer((1, 0x1000), SKIP, len, &context())?;
        let (addr, said) = rdma.elements().next().ok_or(EINVAL)?;
        let mut good = rdma.elements().count() == 1 && rdma.rdma_requests() == 1 && said == len;
        let bytes = [0, 1, PAGE_SIZE - SKIP - 1, PAGE_SIZE - SKIP, len - 1];
        let expected = |at: usize| {
            let at = at + SKIP;
            phys.get(at / PAGE_SIZE)
                .map(|page| page + (at % PAGE_SIZE) as u64)
        };
        for at in bytes {
            good &= Some(device.phys(addr + at as u64)) == expected(at);
        }
        drop(rdma.finish());
        for at in bytes {
            good &= device.phys(addr + at as u64) == 0;
        }
        Ok(good)
    }

    #[test]
    fn reads_are_joined_behind_an_iommu() {
        assert_eq!(joined(Opcode::Read), Ok(true));
    }

    #[test]
    fn writes_are_joined_behind_an_iommu() {
        assert_eq!(joined(Opcode::Write), Ok(true));
    }

    /// Memory that does not fill its pages is mapped piece by piece.
    fn gaps_stay() -> Result<bool> {
        let device = TestDevice::new(true)?;
        let pages = scattered()?;
        let phys = physical_addresses(&pages)?;
        let mut rdma = begin(&device, Opcode::Write, Gaps(pages))?;
        rdma.transfer((1, 0), 0, 2 * REST, &context())?;
        let mut good = rdma.elements().count() == 2 && rdma.rdma_requests() == 1;
        for ((addr, len), page) in rdma.elements().zip(phys.iter()) {
            good &= len == REST && device.phys(addr) == page + GAP as u64;
        }
        drop(rdma.finish());
        Ok(good)
    }

    #[test]
    fn gaps_are_not_joined() {
        assert_eq!(gaps_stay(), Ok(true));
    }

    /// Without an IOMMU each page is an element, and requests take as many as they can.
    fn elements_without_iommu() -> Result<bool> {
        let device = TestDevice::new(false)?;
        let mut rdma = begin(&device, Opcode::Read, scattered()?)?;
        rdma.transfer((1, 0), 0, PAGES * PAGE_SIZE, &context())?;
        let requests = PAGES.div_ceil(MAX_SGE as usize);
        let good = rdma.elements().count() == PAGES && rdma.rdma_requests() == requests;
        drop(rdma.finish());
        Ok(good)
    }

    #[test]
    fn pages_are_elements_without_an_iommu() {
        assert_eq!(elements_without_iommu(), Ok(true));
    }

    /// What a transfer of some bytes from one place is answered with.
    fn answer(iommu: bool, at: usize, len: usize) -> Result {
        let device = TestDevice::new(iommu)?;
        let mut rdma = begin(&device, Opcode::Read, scattered()?)?;
        let answer = rdma.transfer((1, 0), at, len, &context());
        drop(rdma.finish());
        answer
    }

    #[test]
    fn transfers_of_nothing_are_refused() {
        assert_eq!(answer(true, 0, 0), Err(EINVAL));
        assert_eq!(answer(false, 0, 0), Err(EINVAL));
    }

    #[test]
    fn transfers_beyond_the_memory_are_refused() {
        let all = PAGES * PAGE_SIZE;
        assert_eq!(answer(true, 0, all + 1), Err(EMSGSIZE));
        assert_eq!(answer(true, all, 1), Err(EMSGSIZE));
        assert_eq!(answer(false, 1, all), Err(EMSGSIZE));
    }

    /// The second of two transfers needs more elements than there is room for.
    fn beyond_the_room() -> Result {
        let device = TestDevice::new(false)?;
        let mut rdma = begin(&device, Opcode::Read, scattered()?)?;
        rdma.transfer((1, 0), 0, PAGES * PAGE_SIZE, &context())?;
        let answer = rdma.transfer((1, 0), 0, 1, &context());
        drop(rdma.finish());
        answer
    }

    #[test]
    fn transfers_beyond_the_room_are_refused() {
        assert_eq!(beyond_the_room(), Err(ENOSPC));
    }
}

#[kunit_tests(svcrdma_rs_sq)]
#[allow(unsafe_op_in_unsafe_fn, reason = "what the macro makes")]
#[allow(clippy::undocumented_unsafe_blocks, reason = "what the macro makes")]
mod sq {
    use crate::{
        ib::sq::Sq,
        kern::context::Sleepable, //
    };
    use kernel::prelude::*;

    const DEPTH: u32 = 8;

    fn queue() -> Result<Pin<KBox<Sq>>> {
        KBox::pin_init(Sq::new(DEPTH), GFP_KERNEL)
    }

    fn context() -> Sleepable {
        // SAFETY: KUnit runs tests in a thread of its own.
        unsafe { Sleepable::assume() }
    }

    fn come_back() -> Result<bool> {
        let sq = queue()?;
        let some = sq.try_reserve(5).ok_or(ENOSPC)?;
        let mut good = sq.try_reserve(4).is_none() && sq.try_reserve(3).is_some();
        drop(some);
        let all = sq.reserve(DEPTH, || true, &context())?;
        good &= sq.try_reserve(1).is_none() && !all.has_waited();
        let posted = all.into_slots();
        good &= sq.try_reserve(1).is_none();
        sq.give_back(posted);
        good &= sq.try_reserve(DEPTH).is_some();
        Ok(good)
    }

    #[test]
    fn slots_come_back() {
        assert_eq!(come_back(), Ok(true));
    }

    #[test]
    fn more_than_all_is_refused() {
        let answer = queue().and_then(|sq| sq.reserve(DEPTH + 1, || true, &context()).map(drop));
        assert_eq!(answer, Err(E2BIG));
    }

    /// What a thread that has to wait is told when the connection is dead.
    fn wait_for_the_dead() -> Result {
        let sq = queue()?;
        let _all = sq.try_reserve(DEPTH).ok_or(ENOSPC)?;
        sq.reserve(1, || false, &context()).map(drop)
    }

    #[test]
    fn nobody_waits_for_the_dead() {
        assert_eq!(wait_for_the_dead(), Err(ENOTCONN));
    }

    fn reserve_when_closed() -> Result {
        let sq = queue()?;
        sq.close();
        if sq.try_reserve(1).is_some() {
            return Err(EINVAL);
        }
        sq.reserve(1, || true, &context()).map(drop)
    }

    #[test]
    fn a_closed_queue_has_no_room() {
        assert_eq!(reserve_when_closed(), Err(ENOTCONN));
    }
}
