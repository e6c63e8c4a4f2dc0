// SPDX-License-Identifier: GPL-2.0
//! The kinds of work request that a peer may send.

use verbs_sys as sys;

/// Plain Sends, and everything else that may reach a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Send {
    Plain,
    Immediate(u32),
    Invalidate(u32),
    /// RDMA Write with immediate data: completes a Receive of the server.
    WriteImmediate {
        key: u32,
        address: u64,
        value: u32,
    },
    Solicited,
    Fenced,
    Write {
        key: u32,
        address: u64,
    },
    Read {
        key: u32,
        address: u64,
    },
    Atomic {
        key: u32,
        address: u64,
    },
}

impl Send {
    /// The work request, for the evidence.
    pub fn name(self) -> String {
        match self {
            Send::Plain => "SEND".into(),
            Send::Immediate(value) => format!("SEND_WITH_IMM {value:#x}"),
            Send::Invalidate(key) => format!("SEND_WITH_INV {key:#x}"),
            Send::WriteImmediate {
                key,
                address,
                value,
            } => {
                format!("RDMA_WRITE_WITH_IMM {value:#x} to {key:#x} {address:#x}")
            }
            Send::Solicited => "SEND solicited".into(),
            Send::Fenced => "SEND fenced".into(),
            Send::Write { key, address } => format!("RDMA_WRITE to {key:#x} {address:#x}"),
            Send::Read { key, address } => format!("RDMA_READ of {key:#x} {address:#x}"),
            Send::Atomic { key, address } => format!("ATOMIC_FETCH_AND_ADD {key:#x} {address:#x}"),
        }
    }

    /// Make a request one of this kind.
    pub fn apply(self, request: &mut sys::ibv_send_wr) {
        match self {
            Send::Plain => {}
            Send::Solicited => request.send_flags |= sys::IBV_SEND_SOLICITED,
            Send::Fenced => request.send_flags |= sys::IBV_SEND_FENCE,
            Send::Immediate(value) => {
                request.opcode = sys::IBV_WR_SEND_WITH_IMM;
                request.__bindgen_anon_1.imm_data = value.to_be();
            }
            Send::Invalidate(key) => {
                request.opcode = sys::IBV_WR_SEND_WITH_INV;
                request.__bindgen_anon_1.invalidate_rkey = key;
            }
            Send::WriteImmediate {
                key,
                address,
                value,
            } => {
                request.opcode = sys::IBV_WR_RDMA_WRITE_WITH_IMM;
                request.__bindgen_anon_1.imm_data = value.to_be();
                request.wr.rdma = sys::ibv_send_wr__bindgen_ty_2__bindgen_ty_1 {
                    remote_addr: address,
                    rkey: key,
                };
            }
            Send::Write { key, address } => {
                request.opcode = sys::IBV_WR_RDMA_WRITE;
                request.wr.rdma = sys::ibv_send_wr__bindgen_ty_2__bindgen_ty_1 {
                    remote_addr: address,
                    rkey: key,
                };
            }
            Send::Read { key, address } => {
                request.opcode = sys::IBV_WR_RDMA_READ;
                request.wr.rdma = sys::ibv_send_wr__bindgen_ty_2__bindgen_ty_1 {
                    remote_addr: address,
                    rkey: key,
                };
            }
            Send::Atomic { key, address } => {
                request.opcode = sys::IBV_WR_ATOMIC_FETCH_AND_ADD;
                request.wr.atomic = sys::ibv_send_wr__bindgen_ty_2__bindgen_ty_2 {
                    remote_addr: address,
                    rkey: key,
                    compare_add: 1,
                    swap: 0,
                };
            }
        }
    }
}
