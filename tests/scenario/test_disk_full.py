"""A full disk is an error with a name; nothing is half-done, and it goes on when space is back."""
import errno
import os
import subprocess

import pytest

import harness
from harness import Refused, until

MEGABYTES = 40


@pytest.fixture
def small_disk(stopped):
    """The state directory on a file system of its own, which this user may fill."""
    stopped.state.mkdir(mode=0o700)
    if os.geteuid() != 0:
        pytest.skip("needs to mount a small file system")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m,mode=0700", "tmpfs", stopped.state], check=True)
    try:
        yield stopped
    finally:
        stopped.finish()
        subprocess.run(["umount", stopped.state], check=True)
        stopped.checks_doctor = False


def fill(directory, leave=0):
    """A file that takes all but `leave` bytes of what is free."""
    free = os.statvfs(directory)
    filler = os.open(directory / "filler", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        size = free.f_bavail * free.f_frsize - leave
        while size > 0:
            size -= os.write(filler, bytes(min(size, 65536)))
    except OSError as error:
        assert error.errno == errno.ENOSPC
    finally:
        os.close(filler)
    return directory / "filler"


def write_until_full(caller):
    made = []
    for i in range(20000):
        try:
            item = caller.item(f"item {i}", description="x" * 60000)
        except Refused as refusal:
            return made, refusal
        made.append(item)
    raise AssertionError("the disk never filled")


def test_a_full_disk_is_named_and_nothing_is_lost(small_disk):
    """mcp 6.5 disk-full: over the protocol it is a typed error, and it passes when space is back."""
    small_disk.start()
    local = small_disk.local()
    kept = local.item("kept")
    filler = fill(small_disk.state, leave=512 * 1024)
    made, refusal = write_until_full(local)
    assert refusal.code == "storage_full", refusal
    assert refusal.error["fix"]

    # Reading goes on, every acknowledged item is there, and what frees space is let in.
    assert local.get(kept)["title"] == "kept"
    for item in made:
        assert local.get(item)["title"].startswith("item ")
    if made:
        local.op("items_write", "delete", itemId=made[-1])

    filler.unlink()
    until(lambda: writes_again(local))
    small_disk.restart()
    assert small_disk.local().get(kept)["title"] == "kept"


def writes_again(local):
    try:
        return local.item("again")
    except Refused as refusal:
        assert refusal.code == "storage_full", refusal
        return None


def test_an_atomic_call_on_a_full_disk_is_all_or_nothing(small_disk):
    small_disk.start()
    local = small_disk.local()
    fill(small_disk.state, leave=1024 * 1024)
    with pytest.raises(Refused) as caught:
        for i in range(1000):
            local.ops("items_write", *({"op": "create", "title": f"part {k}", "description": "x" * 20000} for k in range(20)), atomic=True)
    assert caught.value.code == "storage_full"
    assert sum(local.read("items_read", "overview")["totals"].values()) % 20 == 0


def test_an_orderly_stop_works_on_a_full_disk(small_disk):
    small_disk.start()
    local = small_disk.local()
    filler = fill(small_disk.state, leave=256 * 1024)
    write_until_full(local)
    small_disk.stop()
    filler.unlink()
    small_disk.start().stop()


def test_a_start_on_a_full_disk_says_so(small_disk):
    small_disk.start().stop()
    filler = fill(small_disk.state)
    process = small_disk.spawn()
    line = small_disk.first_line(process, 20 * harness.SLACK)
    if line:  # it may serve reads; writes then say storage_full
        assert "dais: ready" in line
        with pytest.raises(Refused) as caught:
            for i in range(2000):
                small_disk.item(f"item {i}", description="x" * 60000)
        assert caught.value.code == "storage_full"
        small_disk.stop()
    else:
        code = process.wait(timeout=20)
        process.stdout.close()
        small_disk.process = None
        assert code == 73, (code, small_disk.log())  # "cannot create"
        assert "full" in small_disk.log() or "space" in small_disk.log()
    filler.unlink()


def test_a_first_start_on_a_full_disk_cannot_create_its_files(small_disk):
    filler = fill(small_disk.state)
    code, said = small_disk.fails_to_start(seconds=20)
    assert code == 73, (code, said)  # "cannot create"
    assert "full" in said
    filler.unlink()
    small_disk.start()
    assert small_disk.item("there is room again")
