// SPDX-License-Identifier: GPL-2.0
/* Module parameters of kinds that the module! macro does not have. */

#include <linux/module.h>
#include <svcrdma/helpers.h>

char *svcrs_reader = "auto";
module_param_named(reader, svcrs_reader, charp, 0444);
MODULE_PARM_DESC(reader,
		 "RDMA Reads into memory named by the local key (local), into registered memory (frmr), or as the fabric needs it (auto)");

bool svcrs_drop_in;
module_param_named(drop_in, svcrs_drop_in, bool, 0444);
MODULE_PARM_DESC(drop_in,
		 "Register as \"rdma\" in place of the kernel's own transport, not as \"rdma-rs\" beside it");

#ifdef SVCRDMA_DMA_CHECK
bool svcrs_dma_bounce;
module_param_named(dma_bounce, svcrs_dma_bounce, bool, 0444);
MODULE_PARM_DESC(dma_bounce, "Give devices pages of their own, to make missing DMA syncs visible");
#endif
