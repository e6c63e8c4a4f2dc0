/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shims over static inlines and macros, called from Rust. Each does one thing and decides nothing.
 * gcc and bindgen read the same prototypes.
 */
#ifndef SVCRDMA_HELPERS_H
#define SVCRDMA_HELPERS_H

#include <linux/types.h>

struct dma_iova_state;
struct ib_cq;
struct ib_device;
struct ib_mr;
struct ib_pd;
struct ib_qp;
struct ib_recv_wr;
struct ib_send_wr;
struct net;
struct page;
struct rdma_cm_id;
struct rpc_xprt;
struct scatterlist;
struct shrinker;
struct sockaddr;
struct svc_rqst;
struct svc_xprt;
struct workqueue_struct;

/* rust/helpers/ib.c */

/* Limits of a device, in the units of struct ib_device_attr. */
struct svcrs_device_caps {
	u32 max_qp_wr;
	u32 max_cqe;
	u32 max_send_sge;
	u32 max_sge_rd;
	u32 max_qp_init_rd_atom;
	u32 max_seg_size;
	u32 max_fast_reg_pages;
	bool mem_mgt_extensions;
	bool iwarp;
	bool read_inv;
};

void svcrs_device_caps(struct ib_device *dev, u32 port,
		       struct svcrs_device_caps *caps);
void svcrs_device_name(const struct ib_device *dev, char *name, size_t len);
u32 svcrs_pd_local_dma_lkey(const struct ib_pd *pd);
void *svcrs_cq_context(const struct ib_cq *cq);
int svcrs_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr);
int svcrs_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr);
u64 svcrs_dma_map_page(struct ib_device *dev, struct page *page, size_t offset,
		       size_t len, bool from_device);
bool svcrs_dma_mapping_failed(struct ib_device *dev, u64 addr);
void svcrs_dma_unmap_page(struct ib_device *dev, u64 addr, size_t len,
			  bool from_device);
void svcrs_dma_sync_for_cpu(struct ib_device *dev, u64 addr, size_t len,
			    bool from_device);
void svcrs_dma_sync_for_device(struct ib_device *dev, u64 addr, size_t len,
			       bool from_device);
bool svcrs_maps_by_iommu(const struct ib_device *dev);
bool svcrs_iova_alloc(struct ib_device *dev, struct dma_iova_state *state,
		      struct page *page, size_t offset, size_t len);
int svcrs_iova_link(struct ib_device *dev, struct dma_iova_state *state,
		    struct page *page, size_t offset, size_t at, size_t len,
		    bool from_device);
int svcrs_iova_sync(struct ib_device *dev, struct dma_iova_state *state,
		    size_t len);
void svcrs_iova_destroy(struct ib_device *dev, struct dma_iova_state *state,
			size_t len, bool from_device);
void svcrs_sg_set_page(struct scatterlist *sg, struct page *page, u32 len,
		       u32 offset);
int svcrs_dma_map_sg(struct ib_device *dev, struct scatterlist *sg, int nents);
void svcrs_dma_unmap_sg(struct ib_device *dev, struct scatterlist *sg,
			int nents);

/* Where a memory region is and what its keys are. */
struct svcrs_mr_view {
	u64 iova;
	u32 lkey;
	u32 rkey;
};

void svcrs_mr_view(const struct ib_mr *mr, struct svcrs_mr_view *view);
void svcrs_mr_next_key(struct ib_mr *mr);

/* rust/helpers/cm.c */

u32 svcrs_cm_port(const struct rdma_cm_id *id);

struct ib_device *svcrs_cm_device(const struct rdma_cm_id *id);
const struct sockaddr *svcrs_cm_local_addr(const struct rdma_cm_id *id);
const struct sockaddr *svcrs_cm_peer_addr(const struct rdma_cm_id *id);

/* rust/helpers/mm.c */

struct page *svcrs_alloc_page(void);
void *svcrs_kmalloc_noio(size_t len);
void svcrs_put_page(struct page *page);
void *svcrs_page_address(const struct page *page);
struct page *svcrs_virt_to_page(const void *addr);
bool svcrs_page_private(struct page *page);
bool svcrs_page_follows(const struct page *page, const struct page *next);
struct workqueue_struct *svcrs_alloc_unbound_wq(const char *name);
struct shrinker *svcrs_shrinker_register(unsigned long (*count)(void),
					 unsigned long (*scan)(unsigned long n));

/* rust/helpers/params.c */

extern char *svcrs_reader;
extern bool svcrs_drop_in;
extern bool svcrs_dma_bounce; /* only in a module that is built with checks */

/* rust/helpers/svc.c */

bool svcrs_xprt_get_unless_dead(struct svc_xprt *xprt);
void svcrs_xprt_set_local(struct svc_xprt *xprt, const struct sockaddr *sa);
void svcrs_xprt_set_remote(struct svc_xprt *xprt, const struct sockaddr *sa);
size_t svcrs_sockaddr_len(const struct sockaddr *sa);
int svcrs_sockaddr_print(const struct sockaddr *sa, char *buf, size_t len);
u32 svcrs_serv_maxpages(const struct svc_xprt *xprt);

/* rust/helpers/rpc.c */

struct rpc_timeout;
extern const struct rpc_timeout svcrs_rpc_timeout;

int svcrs_rpc_format_addresses(struct rpc_xprt *xprt);
void svcrs_rpc_free_addresses(struct rpc_xprt *xprt);

/* rust/helpers/kunit.c, in a kernel that has KUnit */

struct ib_device *svcrs_kunit_device(bool iommu);
void svcrs_kunit_device_put(struct ib_device *dev);
u64 svcrs_kunit_device_phys(struct ib_device *dev, u64 addr);
u64 svcrs_kunit_phys(const void *address);

#endif
