// SPDX-License-Identifier: GPL-2.0
/* Shims over the inlines of <linux/sunrpc/svc_xprt.h> and of socket addresses. */

#include <linux/inet.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/svc.h>
#include <linux/sunrpc/svc_xprt.h>
#include <svcrdma/helpers.h>

bool svcrs_xprt_get_unless_dead(struct svc_xprt *xprt)
{
	return kref_get_unless_zero(&xprt->xpt_ref);
}

size_t svcrs_sockaddr_len(const struct sockaddr *sa)
{
	switch (sa->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	}
	return 0;
}

void svcrs_xprt_set_local(struct svc_xprt *xprt, const struct sockaddr *sa)
{
	svc_xprt_set_local(xprt, sa, svcrs_sockaddr_len(sa));
}

/*
 * The port of a remote address is left out: the duplicate reply cache keys on the address, and an
 * RDMA client has no stable port across reconnects.
 */
void svcrs_xprt_set_remote(struct svc_xprt *xprt, const struct sockaddr *sa)
{
	svc_xprt_set_remote(xprt, sa, svcrs_sockaddr_len(sa));
	rpc_set_port((struct sockaddr *)&xprt->xpt_remote, 0);
}

int svcrs_sockaddr_print(const struct sockaddr *sa, char *buf, size_t len)
{
	return scnprintf(buf, len, "%pISpc", sa);
}

u32 svcrs_serv_maxpages(const struct svc_xprt *xprt)
{
	return svc_serv_maxpages(xprt->xpt_server);
}
