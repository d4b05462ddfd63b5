"""A power cut under load: what was written but not synced is gone, and what was acknowledged is there.

A library in front of the server notes every write to the database and its log until a sync has covered it. After a
kill -9 those bytes are overwritten with zeros: the disk had not got to them."""
import random
import struct
import subprocess
import time

import pytest

from test_crash import WRITERS, assert_all_is_there, kill_under_load

SHIM = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ENTRIES = 400000 };
struct journal { /* of one file: writes from `begin` on are not known to be on the disk */
	int64_t begin, end;
	struct { int64_t at, n; } writes[ENTRIES];
};
static struct journal *shared; /* of the database, of the log */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct journal *journal_of(int fd)
{
	char link[64], path[4096];
	ssize_t n;

	if (shared == NULL) {
		int file = open(getenv("WRITES"), O_RDWR);

		shared = mmap(NULL, 2 * sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		close(file);
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	if (n > 7 && memcmp(path + n - 7, "dais.db", 7) == 0)
		return &shared[0];
	return n > 11 && memcmp(path + n - 11, "dais.db-wal", 11) == 0 ? &shared[1] : NULL;
}

static void note(int fd, int64_t at, int64_t n)
{
	struct journal *journal;

	pthread_mutex_lock(&lock);
	journal = journal_of(fd);
	if (journal != NULL) {
		if (journal->end == ENTRIES)
			abort();
		journal->writes[journal->end].at = at;
		journal->writes[journal->end].n = n;
		journal->end++;
	}
	pthread_mutex_unlock(&lock);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
	ssize_t (*next)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");

	note(fd, at, (int64_t)n);
	return next(fd, bytes, n, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	return pwrite64(fd, bytes, n, at);
}

/* What is written while it runs may not be covered. */
static int sync_with(int (*next)(int), int fd)
{
	struct journal *journal;
	int64_t covered = 0;
	int rc;

	pthread_mutex_lock(&lock);
	journal = journal_of(fd);
	if (journal != NULL)
		covered = journal->end;
	pthread_mutex_unlock(&lock);
	rc = next(fd);
	pthread_mutex_lock(&lock);
	if (journal != NULL && rc == 0 && covered > journal->begin)
		journal->begin = covered;
	pthread_mutex_unlock(&lock);
	return rc;
}

int fdatasync(int fd)
{
	return sync_with((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"), fd);
}

int fsync(int fd)
{
	return sync_with((int (*)(int))dlsym(RTLD_NEXT, "fsync"), fd);
}
"""
JOURNAL = 16 + 400000 * 16


def lose_what_was_not_synced(place, state):
    """The number of bytes that a power cut took."""
    lost = 0
    content = place.read_bytes()
    for i, name in enumerate(("dais.db", "dais.db-wal")):
        begin, end = struct.unpack_from("qq", content, i * JOURNAL)
        with open(state / name, "r+b") as file:
            for n in range(begin, end):
                at, size = struct.unpack_from("qq", content, i * JOURNAL + 16 + n * 16)
                if at == 0 and i == 0:
                    continue  # holds the header, which is read without the log; a disk writes a sector whole
                file.seek(at)
                file.write(bytes(size))
                lost += size
    return lost


@pytest.mark.preload
@pytest.mark.timeout(600)
def test_a_power_cut_takes_nothing_that_was_acknowledged(stopped, tmp_path):
    (tmp_path / "writes.c").write_text(SHIM)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", tmp_path / "writes.so", tmp_path / "writes.c", "-ldl"],
                   check=True)
    place = tmp_path / "writes"
    seed = int(time.time())
    print("seed", seed)
    dice, known, lost, root = random.Random(seed), {}, 0, None
    for round_ in range(8):
        place.write_bytes(bytes(2 * JOURNAL))
        stopped.environment = {"LD_PRELOAD": str(tmp_path / "writes.so"), "WRITES": str(place)}
        stopped.start()
        stopped.environment = {}
        root = root or stopped.item("load")
        callers = [(stopped.admin_token, f"r{round_}w{i}") for i in range(2 * WRITERS)]
        kill_under_load(stopped, callers, root, known, dice.uniform(0.3, 1.0))
        lost += lose_what_was_not_synced(place, stopped.state)
    assert lost > 0, "nothing was ever on its way: this test shows nothing"
    stopped.start()
    assert_all_is_there(stopped, known)
    stopped.stop()
    assert "sound" in stopped.run("doctor").stdout
