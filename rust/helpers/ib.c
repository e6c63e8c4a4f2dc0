// SPDX-License-Identifier: GPL-2.0
/* Shims over the inlines of <rdma/ib_verbs.h>. */

#include <linux/dma-mapping.h>
#include <linux/iommu-dma.h>
#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>
#include <svcrdma/helpers.h>

void svcrs_device_caps(struct ib_device *dev, u32 port,
		       struct svcrs_device_caps *caps)
{
	const struct ib_device_attr *attr = &dev->attrs;

	caps->max_qp_wr = attr->max_qp_wr;
	caps->max_cqe = attr->max_cqe;
	caps->max_send_sge = attr->max_send_sge;
	caps->max_sge_rd = attr->max_sge_rd;
	caps->max_qp_init_rd_atom = attr->max_qp_init_rd_atom;
	caps->max_seg_size = ib_dma_max_seg_size(dev);
	if (dev->dma_device)
		caps->max_seg_size =
			min_t(size_t, caps->max_seg_size,
			      dma_max_mapping_size(dev->dma_device));
	caps->max_fast_reg_pages = attr->max_fast_reg_page_list_len;
	caps->iwarp = rdma_protocol_iwarp(dev, port);
	caps->read_inv = rdma_cap_read_inv(dev, port);
	caps->mem_mgt_extensions =
		attr->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS;
}

void svcrs_device_name(const struct ib_device *dev, char *name, size_t len)
{
	strscpy(name, dev->name, len);
}

u32 svcrs_pd_local_dma_lkey(const struct ib_pd *pd)
{
	return pd->local_dma_lkey;
}

void *svcrs_cq_context(const struct ib_cq *cq)
{
	return cq->cq_context;
}

int svcrs_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr)
{
	return ib_post_send(qp, wr, bad_wr);
}

int svcrs_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr)
{
	return ib_post_recv(qp, wr, NULL);
}

static enum dma_data_direction direction(bool from_device)
{
	return from_device ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
}

u64 svcrs_dma_map_page(struct ib_device *dev, struct page *page, size_t offset,
		       size_t len, bool from_device)
{
	return ib_dma_map_page(dev, page, offset, len, direction(from_device));
}

bool svcrs_dma_mapping_failed(struct ib_device *dev, u64 addr)
{
	return ib_dma_mapping_error(dev, addr);
}

void svcrs_dma_unmap_page(struct ib_device *dev, u64 addr, size_t len,
			  bool from_device)
{
	ib_dma_unmap_page(dev, addr, len, direction(from_device));
}

void svcrs_dma_sync_for_cpu(struct ib_device *dev, u64 addr, size_t len,
			    bool from_device)
{
	ib_dma_sync_single_for_cpu(dev, addr, len, direction(from_device));
}

void svcrs_dma_sync_for_device(struct ib_device *dev, u64 addr, size_t len,
			       bool from_device)
{
	ib_dma_sync_single_for_device(dev, addr, len, direction(from_device));
}

bool svcrs_maps_by_iommu(const struct ib_device *dev)
{
	return dev->dma_device && use_dma_iommu(dev->dma_device);
}

bool svcrs_iova_alloc(struct ib_device *dev, struct dma_iova_state *state,
		      struct page *page, size_t offset, size_t len)
{
	return dma_iova_try_alloc(dev->dma_device, state,
				  page_to_phys(page) + offset, len);
}

int svcrs_iova_link(struct ib_device *dev, struct dma_iova_state *state,
		    struct page *page, size_t offset, size_t at, size_t len,
		    bool from_device)
{
	return dma_iova_link(dev->dma_device, state,
			     page_to_phys(page) + offset, at, len,
			     direction(from_device), 0);
}

int svcrs_iova_sync(struct ib_device *dev, struct dma_iova_state *state,
		    size_t len)
{
	return dma_iova_sync(dev->dma_device, state, 0, len);
}

void svcrs_iova_destroy(struct ib_device *dev, struct dma_iova_state *state,
			size_t len, bool from_device)
{
	dma_iova_destroy(dev->dma_device, state, len, direction(from_device), 0);
}

void svcrs_sg_set_page(struct scatterlist *sg, struct page *page, u32 len,
		       u32 offset)
{
	sg_set_page(sg, page, len, offset);
}

int svcrs_dma_map_sg(struct ib_device *dev, struct scatterlist *sg, int nents)
{
	return ib_dma_map_sg(dev, sg, nents, DMA_FROM_DEVICE);
}

void svcrs_dma_unmap_sg(struct ib_device *dev, struct scatterlist *sg,
			int nents)
{
	ib_dma_unmap_sg(dev, sg, nents, DMA_FROM_DEVICE);
}

void svcrs_mr_view(const struct ib_mr *mr, struct svcrs_mr_view *view)
{
	view->iova = mr->iova;
	view->lkey = mr->lkey;
	view->rkey = mr->rkey;
}

void svcrs_mr_next_key(struct ib_mr *mr)
{
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
}
