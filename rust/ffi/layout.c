// SPDX-License-Identifier: GPL-2.0
/* Compiled to assembly only; Kbuild reads the numbers out of it. */

#include <linux/kbuild.h>
#include <svcrdma/bindings.h>
#include <svcrdma/layout.h>

#define EMIT_SIZE(type) DEFINE(type##__sizeof, sizeof(struct type));
#define EMIT(type, member) DEFINE(type##__##member, offsetof(struct type, member));

int main(void);
int main(void)
{
	SVCRDMA_LAYOUT(EMIT)
	SVCRDMA_SIZES(EMIT_SIZE)
	return 0;
}
