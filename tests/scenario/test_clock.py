"""Somebody sets the clock of the machine: waits, sessions and streams go on, and what is stored never runs backwards."""
import datetime
import json
import struct
import subprocess

import pytest

from harness import SLACK, Refused
from wire import eventually

# The wall clock is off by what a file says, in seconds; the monotonic one is left alone.
SHIM = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const volatile int64_t *off;

__attribute__((constructor)) static void begin(void)
{
	int fd = open(getenv("CLOCK_OFF"), O_RDONLY);

	off = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
	static int (*real)(clockid_t, struct timespec *);
	int rc;

	if (real == NULL)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	rc = real(clock, out);
	if (rc == 0 && off != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		out->tv_sec += *off;
	return rc;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*out = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
	return 0;
}

time_t time(time_t *out)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (out != NULL)
		*out = now.tv_sec;
	return now.tv_sec;
}
"""
HOUR = 3600


@pytest.fixture
def clock(stopped, tmp_path):
    """Moves the server's wall clock by so many seconds."""
    (tmp_path / "clock.c").write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", tmp_path / "clock.so", tmp_path / "clock.c", "-ldl"], check=True)
    place = tmp_path / "off"
    place.write_bytes(bytes(4096))
    stopped.environment = {"LD_PRELOAD": str(tmp_path / "clock.so"), "CLOCK_OFF": str(place)}
    stopped.start()
    stopped.environment = {}  # the server's clock alone

    def move(seconds):
        with open(place, "r+b") as file:
            file.write(struct.pack("q", seconds))
    return move


def shown(item):
    return datetime.datetime.fromisoformat(item["modifiedAt"])


@pytest.mark.preload
@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_clock_jump(stopped, clock, jump):
    """mcp 6.5 clock-jump: sessions, subscriptions, notices and writes are sane an hour later, and an hour earlier."""
    wire, local = stopped.wire(), stopped.local()
    item = local.item("timed")
    before = shown(local.get(item))
    session = wire.session()
    stream = wire.modern("subscriptions/listen", {"notifications": {"resourceSubscriptions": [f"dais://item/{item}"]}})
    assert stream.message()
    notices = session.get()
    clock(jump)
    assert session.request("tools/list").status == 200
    for n in range(3):  # notices are not held back for an hour, and do not come all at once either
        local.op("items_write", "update", itemId=item, summary=f"s{n}")
        stream.sock.settimeout(5 * SLACK)
        assert stream.message()["method"] == "notifications/resources/updated"
    after = shown(local.get(item))
    assert after >= before
    assert notices.status == 200
    clock(0)
    local.op("items_write", "update", itemId=item, summary="back")
    assert shown(local.get(item)) >= after
    assert session.request("ping").status == 200


@pytest.mark.preload
def test_a_claim_ends_by_the_wall_clock(stopped, clock):
    """Claims are stored with their end; whoever looks at a clock later finds them over."""
    local, other = stopped.local(), stopped.token()
    item = local.item("held")
    local.claim(item, ttlSeconds=900)
    with pytest.raises(Refused):
        other.claim(item)
    clock(HOUR)
    assert other.claim(item)


@pytest.mark.preload
def test_a_token_that_ends_ends_when_the_clock_says_so(stopped, clock):
    done = stopped.run("token", "create", "--id", "day", "--capabilities", "read", "--ttl", 1800, "--json", check=0)
    wire = stopped.wire(json.loads(done.stdout)["token"])
    assert wire.modern("tools/list").status == 200
    clock(HOUR)
    eventually(lambda: wire.modern("tools/list").status == 401)
