// SPDX-License-Identifier: GPL-2.0

//! Unit tests of what a connection on a device is like. They are not in `transport`, which is free
//! of unsafe code: the macro makes some.

use kernel::prelude::*;

#[kunit_tests(svcrdma_rs_geometry)]
#[allow(unsafe_op_in_unsafe_fn, reason = "what the macro makes")]
#[allow(clippy::undocumented_unsafe_blocks, reason = "what the macro makes")]
mod geometry {
    use crate::{
        ib::device::DeviceCaps,
        transport::geometry::{
            self,
            Reader,
            ReaderChoice, //
        }, //
    };
    use kernel::prelude::*;

    /// Of 1 MiB, and of 4 MiB.
    const PAGES: usize = 257;
    const MANY_PAGES: usize = 1025;
    const LARGE: DeviceCaps = DeviceCaps {
        max_qp_wr: 16384,
        max_cqe: 32767,
        max_send_sge: 32,
        max_sge_rd: 32,
        max_rd_atom: 128,
        max_seg_size: u32::MAX,
        mem_mgt_extensions: true,
        max_fast_reg_pages: 512,
        iwarp: false,
        read_inv: false,
    };
    const WITHOUT_REGISTRATION: DeviceCaps = DeviceCaps {
        mem_mgt_extensions: false,
        ..LARGE
    };

    #[derive(Debug, PartialEq)]
    enum Kind {
        Local,
        Registered,
        Refused,
    }
    use Kind::*;

    /// What becomes of a connection.
    fn kind(choice: ReaderChoice, caps: &DeviceCaps, pages: usize) -> Kind {
        let reader = geometry::of(caps, pages)
            .and_then(|geometry| choice.for_device(caps, &geometry, pages));
        match reader {
            Ok(Reader::Local) => Local,
            Ok(Reader::Registered { .. }) => Registered,
            Err(error) => {
                assert_eq!(error, EOPNOTSUPP);
                Refused
            }
        }
    }

    #[test]
    fn a_large_device_has_either_reader() {
        for pages in [PAGES, MANY_PAGES] {
            assert_eq!(kind(ReaderChoice::Auto, &LARGE, pages), Local);
            assert_eq!(kind(ReaderChoice::Local, &LARGE, pages), Local);
            assert_eq!(kind(ReaderChoice::Registered, &LARGE, pages), Registered);
        }
    }

    #[test]
    fn iwarp_needs_registration() {
        let iwarp = DeviceCaps {
            iwarp: true,
            ..LARGE
        };
        assert_eq!(kind(ReaderChoice::Auto, &iwarp, PAGES), Registered);
        assert_eq!(kind(ReaderChoice::Local, &iwarp, PAGES), Refused);
        let neither = DeviceCaps {
            iwarp: true,
            ..WITHOUT_REGISTRATION
        };
        assert_eq!(kind(ReaderChoice::Auto, &neither, PAGES), Refused);
    }

    /// A message of single pages must fit into the Send Queue.
    #[test]
    fn few_elements_for_reads_need_registration() {
        let narrow = |max_sge_rd, from| DeviceCaps { max_sge_rd, ..from };
        for (sges, pages, fits) in [
            (1, PAGES, false),
            (2, PAGES, true),
            (4, MANY_PAGES, false),
            (5, MANY_PAGES, true),
        ] {
            let caps = narrow(sges, LARGE);
            let expected = if fits { Local } else { Registered };
            assert_eq!(kind(ReaderChoice::Auto, &caps, pages), expected);
            let caps = narrow(sges, WITHOUT_REGISTRATION);
            let expected = if fits { Local } else { Refused };
            assert_eq!(kind(ReaderChoice::Auto, &caps, pages), expected);
            assert_eq!(kind(ReaderChoice::Local, &caps, pages), expected);
        }
    }

    /// Each needs a registration, a Read and an invalidation, and where it ends one more Read.
    #[test]
    fn regions_must_not_be_too_small_for_the_send_queue() {
        let regions = |max_fast_reg_pages| DeviceCaps {
            max_fast_reg_pages,
            ..LARGE
        };
        for (pages, least) in [(PAGES, 4), (MANY_PAGES, 13)] {
            let fits = regions(least);
            assert_eq!(kind(ReaderChoice::Registered, &fits, pages), Registered);
            let small = regions(least - 1);
            assert_eq!(kind(ReaderChoice::Registered, &small, pages), Refused);
        }
    }

    /// RDMA Writes have no other way.
    #[test]
    fn what_cannot_return_a_message_is_refused() {
        let queue = |max_cqe, max_send_sge| DeviceCaps {
            max_cqe,
            max_send_sge,
            ..LARGE
        };
        // 257 pages need 43 work requests of 6 elements, and the Send one more.
        assert_eq!(kind(ReaderChoice::Auto, &queue(150, 6), PAGES), Refused);
        assert_eq!(kind(ReaderChoice::Auto, &queue(177, 6), PAGES), Refused);
        assert_eq!(kind(ReaderChoice::Auto, &queue(178, 6), PAGES), Local);
        assert_eq!(
            kind(ReaderChoice::Auto, &queue(32767, 4), MANY_PAGES),
            Refused
        );
    }
}
