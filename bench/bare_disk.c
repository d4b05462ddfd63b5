/* The disk and nothing else: overwrite 4 KB of an allocated file, then fdatasync. */
#include "bench/bare.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 4096
#define BLOCKS 1024
#define MAX_SAMPLES 200000

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a;
	const int64_t *y = b;

	return (*x > *y) - (*x < *y);
}

static int allocate(int fd, const char *block)
{
	for (int i = 0; i < BLOCKS; i++)
		if (pwrite(fd, block, BLOCK, (off_t)i * BLOCK) != BLOCK)
			return -1;
	return fsync(fd);
}

int bare_disk(const char *file, double seconds)
{
	static int64_t took[MAX_SAMPLES];
	char block[BLOCK];
	int fd = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int64_t end;
	size_t n = 0;

	memset(block, 'x', sizeof(block));
	if (fd < 0 || allocate(fd, block) != 0) {
		perror(file);
		return 1;
	}
	end = clock_mono_us() + (int64_t)(seconds * 1e6);
	while (n < MAX_SAMPLES && clock_mono_us() < end) {
		int64_t began = clock_mono_us();

		if (pwrite(fd, block, BLOCK, (off_t)(random() % BLOCKS) * BLOCK) != BLOCK || fdatasync(fd) != 0) {
			perror(file);
			return 1;
		}
		took[n++] = clock_mono_us() - began;
	}
	(void)close(fd);
	(void)unlink(file);
	qsort(took, n, sizeof(*took), by_value);
	(void)printf("{\"n\":%zu,\"ms\":{\"p50\":%.3f,\"p99\":%.3f}}\n", n, (double)took[n / 2] / 1000,
		(double)took[n * 99 / 100] / 1000);
	return 0;
}
