// SPDX-License-Identifier: GPL-2.0
//! The cases, a table per group.

mod arguments;
mod attributes;
mod compound;
mod faults;
mod fixed_header;
mod flow;
mod gss;
mod leave;
mod length;
mod machine;
mod minor_two;
mod position_zero;
mod positive;
mod positive_large;
mod read_list;
mod read_sizes;
mod receives;
mod replay;
mod reply_chunk;
mod reverse;
mod reverse_window;
mod rpc;
mod rules;
mod session;
mod setup;
mod teardown;
mod two_chunks;
mod write_list;

pub use leave::helper;

use crate::case::Case;

/// Those that begin with a message on a connection as usual: what the fuzzer mutates.
pub fn messages() -> Vec<Case> {
    let groups: [fn() -> Vec<Case>; 12] = [
        length::cases,
        fixed_header::cases,
        read_list::cases,
        read_sizes::cases,
        position_zero::cases,
        write_list::cases,
        reply_chunk::cases,
        rules::cases,
        compound::cases,
        arguments::cases,
        positive::cases,
        rpc::cases,
    ];
    let cases = groups.iter().flat_map(|group| group());
    cases.filter(|case| case.needs.is_empty()).collect()
}

pub fn all() -> Vec<Case> {
    let groups: [fn() -> Vec<Case>; 26] = [
        length::cases,
        fixed_header::cases,
        read_list::cases,
        read_sizes::cases,
        two_chunks::cases,
        position_zero::cases,
        write_list::cases,
        reply_chunk::cases,
        rules::cases,
        compound::cases,
        arguments::cases,
        positive::cases,
        positive_large::cases,
        attributes::cases,
        minor_two::cases,
        replay::cases,
        reverse::cases,
        reverse_window::cases,
        flow::cases,
        receives::cases,
        faults::cases,
        teardown::cases,
        machine::cases,
        setup::cases,
        rpc::cases,
        gss::cases,
    ];
    groups.iter().flat_map(|group| group()).collect()
}
