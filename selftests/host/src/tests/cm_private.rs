// SPDX-License-Identifier: GPL-2.0

//! Section J of the catalogue: connection manager private data.

use crate::{
    frame::hex,
    proto::{
        cm_private,
        encode_cm_private,
        CmPrivate, //
    },
};

const NONE: CmPrivate = CmPrivate {
    remote_inv: false,
    send: 1024,
    recv: 1024,
};

const LINUX_CLIENT: CmPrivate = CmPrivate {
    remote_inv: true,
    send: 4096,
    recv: 4096,
};

/// The 56 bytes that InfiniBand delivers.
fn padded(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut all = vec![0; 56];
    all[offset..offset + bytes.len()].copy_from_slice(bytes);
    all
}

#[test]
fn known_peers() {
    let client = hex("f6ab0e18 01 01 03 03");
    assert_eq!(cm_private(&client), LINUX_CLIENT);
    assert_eq!(cm_private(&padded(0, &client)), LINUX_CLIENT);
    assert_eq!(encode_cm_private(&LINUX_CLIENT).unwrap()[..], client);
    let server = CmPrivate {
        remote_inv: false,
        ..LINUX_CLIENT
    };
    assert_eq!(
        encode_cm_private(&server).unwrap()[..],
        hex("f6ab0e18 01 00 03 03")
    );
}

#[test]
fn none() {
    assert_eq!(cm_private(&[]), NONE, "M174");
    assert_eq!(cm_private(&[0; 56]), NONE, "M174");
    assert_eq!(cm_private(&hex("f6ab0e19 01 01 03 03")), NONE, "M175");
    for version in ["00", "02", "ff"] {
        let data = hex(&format!("f6ab0e18 {version} 01 03 03"));
        assert_eq!(cm_private(&padded(0, &data)), NONE, "M176");
    }
}

#[test]
fn flags_and_sizes() {
    let flags = cm_private(&hex("f6ab0e18 01 fe 03 03"));
    assert!(!flags.remote_inv, "M177");
    assert!(cm_private(&hex("f6ab0e18 01 ff 03 03")).remote_inv);
    let sizes = cm_private(&hex("f6ab0e18 01 00 ff 00"));
    assert_eq!((sizes.send, sizes.recv), (262_144, 1024), "M178");
}

#[test]
fn anywhere() {
    let client = hex("f6ab0e18 01 01 03 03");
    for offset in 0..=48 {
        assert_eq!(cm_private(&padded(offset, &client)), LINUX_CLIENT, "M179");
    }
    for offset in 49..56 {
        let cut = &client[..56 - offset];
        assert_eq!(cm_private(&padded(offset, cut)), NONE, "M180");
    }
    // A magic that leads to nothing does not hide the right one.
    let twice = hex("f6ab0e18 02 f6ab0e18 01 01 03 03");
    assert_eq!(cm_private(&twice), LINUX_CLIENT);
}

#[test]
fn sizes_that_have_no_code() {
    for bad in [
        0,
        1,
        1023,
        1025,
        262_145,
        262_144 + 1024,
        u32::MAX,
        0xffff_fc00,
    ] {
        let send = CmPrivate { send: bad, ..NONE };
        let recv = CmPrivate { recv: bad, ..NONE };
        assert_eq!(encode_cm_private(&send), None);
        assert_eq!(encode_cm_private(&recv), None);
    }
    for good in [1024, 2048, 262_144] {
        let own = CmPrivate {
            remote_inv: false,
            send: good,
            recv: good,
        };
        assert_eq!(cm_private(&encode_cm_private(&own).unwrap()), own);
    }
}
