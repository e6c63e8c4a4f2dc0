// SPDX-License-Identifier: GPL-2.0
/* Shims over page, workqueue and shrinker interfaces. */

#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <svcrdma/helpers.h>

struct page *svcrs_alloc_page(void)
{
	return alloc_page(GFP_KERNEL | __GFP_NOWARN);
}

void *svcrs_kmalloc_noio(size_t len)
{
	return kmalloc(len, GFP_NOIO | __GFP_NOWARN);
}

void svcrs_put_page(struct page *page)
{
	put_page(page);
}

void *svcrs_page_address(const struct page *page)
{
	return page_address(page);
}

struct page *svcrs_virt_to_page(const void *addr)
{
	return virt_to_page(addr);
}

/*
 * Order 0, one reference, in no mapping, on no LRU list (a page that was
 * truncated from a file still is), not from the emergency reserve.
 */
bool svcrs_page_private(struct page *page)
{
	return !PageCompound(page) && page_ref_count(page) == 1 &&
	       !page_folio(page)->mapping && !PageLRU(page) &&
	       !page_is_pfmemalloc(page);
}

bool svcrs_page_follows(const struct page *page, const struct page *next)
{
	return page_to_pfn(page) + 1 == page_to_pfn(next);
}

struct workqueue_struct *svcrs_alloc_unbound_wq(const char *name)
{
	return alloc_workqueue("%s", WQ_UNBOUND, 0, name);
}

static unsigned long (*shrinker_count)(void);
static unsigned long (*shrinker_scan)(unsigned long n);

static unsigned long count_objects(struct shrinker *shrinker,
				   struct shrink_control *sc)
{
	return shrinker_count() ?: SHRINK_EMPTY;
}

static unsigned long scan_objects(struct shrinker *shrinker,
				  struct shrink_control *sc)
{
	return shrinker_scan(sc->nr_to_scan) ?: SHRINK_STOP;
}

/* One shrinker per module: the callbacks take no context. */
struct shrinker *svcrs_shrinker_register(unsigned long (*count)(void),
					 unsigned long (*scan)(unsigned long n))
{
	struct shrinker *shrinker = shrinker_alloc(0, "svcrdma-rs-pages");

	if (!shrinker)
		return NULL;
	shrinker_count = count;
	shrinker_scan = scan;
	shrinker->count_objects = count_objects;
	shrinker->scan_objects = scan_objects;
	shrinker_register(shrinker);
	return shrinker;
}
