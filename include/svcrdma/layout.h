/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Members whose offsets, and structs whose sizes, Rust relies on. rust/ffi/layout.c turns the list
 * into numbers with the compiler that builds the kernel; rust/ffi/layout.rs compares them with
 * bindgen's view.
 */
#define SVCRDMA_LAYOUT(F)						\
	F(svc_xprt, xpt_class) F(svc_xprt, xpt_ops) F(svc_xprt, xpt_ref)	\
	F(svc_xprt, xpt_flags) F(svc_xprt, xpt_server) F(svc_xprt, xpt_local)	\
	F(svc_xprt, xpt_remote) F(svc_xprt, xpt_remotebuf) F(svc_xprt, xpt_net)	\
	F(svc_xprt, xpt_bc_xprt)						\
	F(svc_xprt_class, xcl_list) F(svc_xprt_class, xcl_ident)		\
	F(svc_rqst, rq_xprt) F(svc_rqst, rq_xprt_ctxt) F(svc_rqst, rq_arg)	\
	F(svc_rqst, rq_res) F(svc_rqst, rq_maxpages) F(svc_rqst, rq_pages)	\
	F(svc_rqst, rq_respages) F(svc_rqst, rq_next_page)			\
	F(svc_rqst, rq_prot) F(svc_rqst, rq_flags)				\
	F(xdr_buf, head) F(xdr_buf, tail) F(xdr_buf, pages)			\
	F(xdr_buf, page_base) F(xdr_buf, page_len) F(xdr_buf, buflen)		\
	F(xdr_buf, len)								\
	F(rpc_xprt, ops) F(rpc_xprt, addr) F(rpc_xprt, max_payload)		\
	F(rpc_xprt, bc_xprt) F(rpc_xprt, queue_lock) F(rpc_xprt, cwnd)		\
	F(rpc_rqst, rq_snd_buf) F(rpc_rqst, rq_xid) F(rpc_rqst, rq_private_buf)	\
	F(rpc_rqst, rq_buffer) F(rpc_rqst, rq_rbuffer) F(rpc_rqst, rq_rcv_buf)	\
	F(rpc_rqst, rq_task) F(rpc_rqst, rq_xtime) F(rpc_rqst, rq_xmit_bytes_sent)	\
	F(rpc_task, tk_status) F(ib_qp, qp_context)				\
	F(ib_cqe, done) F(ib_wc, status) F(ib_wc, opcode) F(ib_wc, byte_len)	\
	F(ib_send_wr, num_sge) F(ib_send_wr, send_flags) F(ib_rdma_wr, remote_addr)	\
	F(ib_recv_wr, num_sge) F(ib_qp_init_attr, cap) F(ib_qp_init_attr, port_num)	\
	F(ib_client, name) F(ib_client, add) F(ib_client, remove)		\
	F(rdma_cm_id, context) F(rdma_cm_id, event_handler)			\
	F(rdma_cm_id, qp) F(rdma_cm_event, param) F(rdma_conn_param, rnr_retry_count)

#define SVCRDMA_SIZES(S)						\
	S(svc_xprt) S(svc_xprt_class) S(svc_xprt_ops) S(svc_rqst) S(xdr_buf)	\
	S(rpc_xprt) S(rpc_xprt_ops) S(rpc_rqst) S(xprt_class) S(xprt_create)	\
	S(ib_cqe) S(ib_wc) S(ib_send_wr) S(ib_rdma_wr) S(ib_reg_wr)		\
	S(ib_recv_wr) S(ib_sge) S(ib_qp_init_attr) S(ib_qp_attr) S(ib_client)	\
	S(rdma_cm_event) S(rdma_conn_param)
