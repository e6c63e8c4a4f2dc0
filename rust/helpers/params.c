// SPDX-License-Identifier: GPL-2.0
/* Module parameters of kinds that the module! macro does not have. */

#include <linux/module.h>
#include <svcrdma/helpers.h>

char *svcrs_reader = "auto";
module_param_named(reader, svcrs_reader, charp, 0444);
MODULE_PARM_DESC(reader,
		 "RDMA Reads into memory named by the local key (local), into registered memory (frmr), or as the fabric needs it (auto)");
