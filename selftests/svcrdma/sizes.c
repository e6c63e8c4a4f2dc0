// SPDX-License-Identifier: GPL-2.0
/*
 * Transfers of many sizes at odd offsets, each one READ or WRITE.
 *
 *	sizes write FILE SAMPLE		write them
 *	sizes read FILE SAMPLE		read them and compare
 *	sizes count SAMPLE		say how many there are
 *
 * SAMPLE is "all" (1 to 9000 and the powers of two to 1 MiB) or N: these powers,
 * every Nth size, and what lies near the sizes where something changes.
 *
 * FILE is opened with O_DIRECT where its file system can do that: on NFS there
 * is then one call for each transfer. Content follows from the offset. Between
 * two transfers lies one byte (of zero) that belongs to none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SMALL	9000
#define BIG	1048576
#define GUARD	64

/* An inline message has 4096 bytes, of which headers take 100 to 400. */
static const int edges[] = { 1, 512, 1024, 3850, 3900, 3950, 4000, 4096, 8192, SMALL, 0 };

static int wanted(int size, int step)
{
	size_t i;

	if (size > SMALL)
		return !(size & (size - 1));
	if (step == 1 || size % step == 0)
		return 1;
	for (i = 0; edges[i]; i++)
		if (abs(size - edges[i]) <= 4)
			return 1;
	return 0;
}

static unsigned char content(uint64_t offset)
{
	uint64_t x = (offset >> 3) * 0x9e3779b97f4a7c15ull;

	x ^= x >> 29;
	return (x >> (8 * (offset & 7))) | 1;	/* never 0 */
}

static void fail(const char *what, int size, off_t offset)
{
	fprintf(stderr, "%s of %d bytes at %lld: %s\n", what, size, (long long)offset,
		errno ? strerror(errno) : "short or wrong");
	exit(1);
}

static void write_one(int fd, unsigned char *buffer, int size, off_t offset)
{
	int i;

	for (i = 0; i < size; i++)
		buffer[i] = content(offset + i);
	errno = 0;
	if (pwrite(fd, buffer, size, offset) != size)
		fail("write", size, offset);
}

static void read_one(int fd, unsigned char *buffer, int size, off_t offset)
{
	int i;

	/* Nothing around the buffer may change, and all of it must. */
	memset(buffer - GUARD, 0, size + 2 * GUARD);
	errno = 0;
	if (pread(fd, buffer, size, offset) != size)
		fail("read", size, offset);
	errno = 0;
	for (i = 0; i < size; i++)
		if (buffer[i] != content(offset + i))
			fail("content read", size, offset);
	for (i = 1; i <= GUARD; i++)
		if (buffer[-i] || buffer[size + i - 1])
			fail("what lies around a read", size, offset);
}

int main(int argc, char **argv)
{
	int counting = argc == 3 && !strcmp(argv[1], "count");
	int writing = argc == 4 && !strcmp(argv[1], "write");
	int reading = argc == 4 && !strcmp(argv[1], "read");
	int size, step, fd = -1, n = 0;
	unsigned char *memory;
	off_t offset = 1;

	if (!counting && !writing && !reading) {
		fprintf(stderr, "usage: sizes write|read FILE SAMPLE | count SAMPLE\n");
		return 2;
	}
	step = strcmp(argv[argc - 1], "all") ? atoi(argv[argc - 1]) : 1;
	if (step < 1)
		return 2;
	if (!counting) {
		int flags = writing ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY;

		fd = open(argv[2], flags | O_DIRECT, 0644);
		if (fd < 0 && errno == EINVAL)
			fd = open(argv[2], flags, 0644);
		if (fd < 0) {
			perror(argv[2]);
			return 1;
		}
	}
	memory = malloc(BIG + 4 * GUARD);
	if (!memory)
		return 1;
	for (size = 1; size <= BIG; size++) {
		/* Buffers start anywhere in a word. */
		unsigned char *buffer = memory + GUARD + size % 8;

		if (!wanted(size, step))
			continue;
		n++;
		if (writing)
			write_one(fd, buffer, size, offset);
		else if (reading)
			read_one(fd, buffer, size, offset);
		offset += size + 1;
		offset |= 1;
	}
	if (writing && (fsync(fd) || close(fd)))
		fail("close", 0, offset);
	if (counting)
		printf("%d\n", n);
	return 0;
}
