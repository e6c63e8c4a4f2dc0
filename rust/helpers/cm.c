// SPDX-License-Identifier: GPL-2.0
/* Accessors of struct rdma_cm_id, whose routes and unions bindgen need not know. */

#include <rdma/rdma_cm.h>
#include <svcrdma/helpers.h>

struct ib_device *svcrs_cm_device(const struct rdma_cm_id *id)
{
	return id->device;
}

u32 svcrs_cm_port(const struct rdma_cm_id *id)
{
	return id->port_num;
}

const struct sockaddr *svcrs_cm_local_addr(const struct rdma_cm_id *id)
{
	return (const struct sockaddr *)&id->route.addr.src_addr;
}

const struct sockaddr *svcrs_cm_peer_addr(const struct rdma_cm_id *id)
{
	return (const struct sockaddr *)&id->route.addr.dst_addr;
}
