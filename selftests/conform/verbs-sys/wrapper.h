/* SPDX-License-Identifier: GPL-2.0 */
#include <rdma/rdma_cma.h>
#include <infiniband/verbs.h>
