// SPDX-License-Identifier: GPL-2.0
/* Shims over the inlines of <linux/sunrpc/xprt.h> that the backchannel needs. */

#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/msg_prot.h>
#include <linux/sunrpc/xprt.h>
#include <svcrdma/helpers.h>

/* A callback that is not answered in a minute never will be. */
const struct rpc_timeout svcrs_rpc_timeout = {
	.to_initval = 60 * HZ,
	.to_maxval = 60 * HZ,
};

int svcrs_rpc_format_addresses(struct rpc_xprt *xprt)
{
	const struct sockaddr *sa = (const struct sockaddr *)&xprt->addr;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)sa;
	const char **strings = xprt->address_strings;
	char buf[INET6_ADDRSTRLEN + IPV6_SCOPE_ID_LEN];

	switch (sa->sa_family) {
	case AF_INET:
		strings[RPC_DISPLAY_NETID] = RPCBIND_NETID_RDMA;
		strings[RPC_DISPLAY_HEX_ADDR] =
			kasprintf(GFP_KERNEL, "%08x", ntohl(sin->sin_addr.s_addr));
		break;
	case AF_INET6:
		strings[RPC_DISPLAY_NETID] = RPCBIND_NETID_RDMA6;
		strings[RPC_DISPLAY_HEX_ADDR] =
			kasprintf(GFP_KERNEL, "%pi6", &sin6->sin6_addr);
		break;
	default:
		return -EAFNOSUPPORT;
	}
	strings[RPC_DISPLAY_PROTO] = "rdma";
	rpc_ntop(sa, buf, sizeof(buf));
	strings[RPC_DISPLAY_ADDR] = kstrdup(buf, GFP_KERNEL);
	strings[RPC_DISPLAY_PORT] =
		kasprintf(GFP_KERNEL, "%u", rpc_get_port(sa));
	strings[RPC_DISPLAY_HEX_PORT] =
		kasprintf(GFP_KERNEL, "%4hx", rpc_get_port(sa));
	if (!strings[RPC_DISPLAY_ADDR] || !strings[RPC_DISPLAY_HEX_ADDR] ||
	    !strings[RPC_DISPLAY_PORT] || !strings[RPC_DISPLAY_HEX_PORT])
		return -ENOMEM;
	return 0;
}

void svcrs_rpc_free_addresses(struct rpc_xprt *xprt)
{
	kfree(xprt->address_strings[RPC_DISPLAY_ADDR]);
	kfree(xprt->address_strings[RPC_DISPLAY_HEX_ADDR]);
	kfree(xprt->address_strings[RPC_DISPLAY_PORT]);
	kfree(xprt->address_strings[RPC_DISPLAY_HEX_PORT]);
}
