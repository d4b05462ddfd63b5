"""What is acknowledged, or shown to anybody, is on the disk: a library in front of the server holds or fails the syncs of
the log."""
import struct
import subprocess
import threading
import time

import pytest

from harness import SLACK, until

SHIM = r"""
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A sync of the log needs a permit; without one it waits, or fails. */
struct control {
	_Atomic int64_t permits, fails; /* permits < 0: any number */
	_Atomic int64_t waiting;
};

static struct control *control(void)
{
	static struct control *shared;

	if (shared == NULL) {
		int fd = open(getenv("SYNC_CONTROL"), O_RDWR);

		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	return shared;
}

static int is_log(int fd)
{
	char link[64], path[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	return n > 4 && memcmp(path + n - 4, "-wal", 4) == 0;
}

int fdatasync(int fd)
{
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
	struct control *c = control();

	if (!is_log(fd))
		return next(fd);
	c->waiting++;
	for (;;) {
		int64_t permits = c->permits;

		if (permits < 0 || (permits > 0 && atomic_compare_exchange_strong(&c->permits, &permits, permits - 1)))
			break;
		if (permits == 0 && c->fails) {
			c->waiting--;
			errno = EIO;
			return -1;
		}
		usleep(1000);
	}
	c->waiting--;
	return next(fd);
}
"""


class Disk:
    def __init__(self, place):
        self.place = place

    def set(self, permits, fails=0):
        with open(self.place, "r+b") as file:
            file.write(struct.pack("qq", permits, fails))

    def waiting(self):
        return struct.unpack("q", self.place.read_bytes()[16:24])[0]

    def until_waiting(self, count):
        end = time.monotonic() + 10 * SLACK
        while self.waiting() != count:
            assert time.monotonic() < end, f"{self.waiting()} syncs wait"
            time.sleep(0.005)


@pytest.fixture
def disk(stopped, tmp_path):
    (tmp_path / "sync.c").write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", tmp_path / "sync.so", tmp_path / "sync.c", "-ldl"], check=True)
    place = tmp_path / "control"
    place.write_bytes(struct.pack("qqq", -1, 0, 0))
    stopped.environment = {"LD_PRELOAD": str(tmp_path / "sync.so"), "SYNC_CONTROL": str(place)}
    stopped.start()
    stopped.environment = {}
    return Disk(place)


class Call(threading.Thread):
    def __init__(self, work):
        super().__init__(daemon=True)
        self.work, self.answer, self.error = work, None, None
        self.start()

    def run(self):
        try:
            self.answer = self.work()
        except Exception as error:  # a closed connection, in whatever way
            self.error = error

    def is_answered(self, seconds=0.3):
        self.join(seconds)
        return not self.is_alive()


def held_back(dais, disk, items):
    """The first call holds the writer at its sync; the others are committed together after it."""
    time.sleep(0.6)  # what earlier calls left for the call log is written
    disk.set(0)
    callers = [dais.http(dais.admin_token) for _ in items]
    calls = [Call(lambda: callers[0].advance(items[0], "start"))]
    disk.until_waiting(1)
    calls += [Call(lambda caller=caller, item=item: caller.advance(item, "start")) for caller, item in zip(callers[1:], items[1:])]
    time.sleep(0.3)  # they are in the queue
    return calls


@pytest.mark.preload
def test_nobody_is_told_of_a_change_before_it_is_on_the_disk(stopped, disk):
    """Neither its caller nor another one who reads, nor who follows the events."""
    items = [stopped.item(f"i{n}") for n in range(4)]
    stream = stopped.http(stopped.admin_token)
    calls = held_back(stopped, disk, items)
    disk.set(1)
    assert calls[0].is_answered(10 * SLACK) and not calls[0].error
    disk.until_waiting(1)
    assert not any(call.is_answered() for call in calls[1:])
    newest = stopped.run("status", "--json").stdout
    reader = Call(lambda: stream.get(items[2])["role"])
    assert not reader.is_answered()
    assert not any(call.is_answered(0) for call in calls[1:])
    disk.set(-1)
    assert all(call.is_answered(10 * SLACK) and not call.error for call in calls)
    assert reader.is_answered(10 * SLACK) and reader.answer == "work"
    assert stopped.run("status", "--json").stdout != newest


@pytest.mark.preload
def test_a_disk_that_hangs_holds_up_no_answer_for_ever(stopped, disk):
    """Who reads what is not on it is told so after a while, others at once; the server itself answers."""
    items = [stopped.item(f"i{n}") for n in range(4)]
    reader, prober = stopped.http(stopped.admin_token), stopped.http(stopped.admin_token)
    calls = held_back(stopped, disk, items)
    disk.set(1)
    assert calls[0].is_answered(10 * SLACK)
    disk.until_waiting(1)
    reading = Call(lambda: reader.get(items[2]))
    assert prober.ask("GET", "/api/v1/health")[0] == 200
    assert reading.is_answered(30 * SLACK) and "unavailable" in str(reading.error)
    assert not any(call.is_answered(0) for call in calls[1:])
    disk.set(-1)
    assert all(call.is_answered(10 * SLACK) and not call.error for call in calls)


@pytest.mark.preload
def test_while_the_disk_writes_a_few_calls_the_next_are_run(stopped, disk):
    """Not all that wait in one batch: eight are on their way to the disk while the other twelve are run."""
    items = [stopped.item(f"i{n}") for n in range(21)]
    calls = held_back(stopped, disk, items)

    def answered():
        return sum(not call.is_alive() for call in calls)

    for expected in (1, 9, 21):
        disk.set(1)
        until(lambda: answered() == expected, 10 * SLACK)
        if expected < len(items):
            disk.until_waiting(1)
            assert answered() == expected
    disk.set(-1)
    assert not any(call.error for call in calls)


@pytest.mark.preload
def test_a_sync_that_fails_after_the_commit_ends_the_server_unacknowledged(stopped, disk):
    """The change can be seen already and what reached the disk is unknown: only a new start can tell."""
    items = [stopped.item(f"i{n}") for n in range(4)]
    calls = held_back(stopped, disk, items)
    disk.set(1, fails=1)
    assert stopped.process.wait(timeout=10 * SLACK) == 70
    assert all(call.is_answered(10 * SLACK) and call.error for call in calls[1:])
    assert "cannot be synced" in stopped.log()
    stopped.process.communicate()
    stopped.process = None
    stopped.close_callers()
    stopped.start()
    assert stopped.get(items[0])["role"] == "work"  # synced, whether or not its answer was out in time


@pytest.mark.preload
def test_a_sync_that_fails_in_the_commit_is_refused_and_undone(stopped, disk):
    item = stopped.item("alone")
    time.sleep(0.6)
    disk.set(0, fails=1)
    call = Call(lambda: stopped.advance(item, "start"))
    assert call.is_answered(10 * SLACK)
    assert call.error is not None
    disk.set(-1)
    assert stopped.get(item)["role"] == "queue"
