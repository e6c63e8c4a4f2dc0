/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The one header bindgen reads: the C interfaces that rust/ffi offers to the layers above it.
 */
#ifndef SVCRDMA_BINDINGS_H
#define SVCRDMA_BINDINGS_H

#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/svc.h>
#include <linux/sunrpc/svc_xprt.h>
#include <linux/sunrpc/svcsock.h>
#include <linux/sunrpc/xprt.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <rdma/rw.h>
#include <svcrdma/helpers.h>

#endif
