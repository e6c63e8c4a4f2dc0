// SPDX-License-Identifier: GPL-2.0
/* RDMA devices for unit tests: nothing but the device they map memory for. */

#include <linux/iommu.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <svcrdma/helpers.h>

/* Maps for the first PCI device behind an IOMMU, or with no IOMMU as rxe does. */
struct ib_device *svcrs_kunit_device(bool iommu)
{
	struct ib_device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	struct pci_dev *pci = NULL;

	if (!dev || !iommu)
		return dev;
	for_each_pci_dev(pci)
		if (device_iommu_mapped(&pci->dev))
			break;
	if (!pci) {
		kfree(dev);
		return NULL;
	}
	dev->dma_device = &pci->dev;
	return dev;
}

void svcrs_kunit_device_put(struct ib_device *dev)
{
	put_device(dev->dma_device);
	kfree(dev);
}

/* The physical address behind one that the device uses, 0 if there is none. */
u64 svcrs_kunit_device_phys(struct ib_device *dev, u64 addr)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev->dma_device);

	return domain ? iommu_iova_to_phys(domain, addr) : 0;
}

u64 svcrs_kunit_phys(const void *address)
{
	return virt_to_phys((void *)address);
}
