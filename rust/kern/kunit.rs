// SPDX-License-Identifier: GPL-2.0

//! Unit tests of rings.

use kernel::prelude::*;

#[kunit_tests(svcrdma_rs_ring)]
#[allow(unsafe_op_in_unsafe_fn, reason = "what the macro makes")]
#[allow(clippy::undocumented_unsafe_blocks, reason = "what the macro makes")]
mod ring {
    use crate::kern::ring::Ring;
    use kernel::prelude::*;

    const CAPACITY: usize = 3;

    /// Pushes and pops until head and tail have gone around, at each fill level.
    fn keeps_order() -> Result<bool> {
        let mut ring = Ring::new(CAPACITY)?;
        let (mut next, mut first) = (0u32, 0u32);
        let mut good = ring.is_empty() && ring.pop().is_none();
        for level in 1..=CAPACITY {
            for _ in 0..2 * CAPACITY {
                for _ in 0..level {
                    good &= ring.push(next).is_ok();
                    next += 1;
                }
                for _ in 0..level {
                    good &= ring.pop() == Some(first);
                    first += 1;
                }
                good &= ring.is_empty();
            }
        }
        Ok(good)
    }

    #[test]
    fn first_in_is_first_out() {
        assert_eq!(keeps_order(), Ok(true));
    }

    fn overfill() -> Result<Result<(), u32>> {
        let mut ring = Ring::new(1)?;
        ring.push(1).map_err(|_| EINVAL)?;
        Ok(ring.push(2))
    }

    #[test]
    fn a_full_ring_gives_the_item_back() {
        assert_eq!(overfill(), Ok(Err(2)));
    }
}
