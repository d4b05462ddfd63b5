"""An orderly end: answers are waited for, streams are ended, the rest is cut."""
import contextlib
import signal
import threading
import time

from http_room import GET, SLACK, start  # noqa: F401


def test_stopping_waits_for_answers_and_ends_streams(start):
    server = start(env={"KEEP_SILENT": "1", "GRACE_MS": "3000"})
    idle, waiting = server.connect(), server.connect()
    idle.send(GET)
    idle.answer()
    waiting.send("GET /later?ms=800 HTTP/1.1\r\nHost: a\r\n\r\n")
    server.until(lambda counts: counts["kept"] == 1)
    server.process.send_signal(signal.SIGTERM)
    assert waiting.answer().body == b"later"
    assert idle.is_closed()
    assert server.stop() == 0
    assert "hangups=0 kept=0" in server.out


def test_stopping_cuts_what_is_not_answered_in_time(start):
    server = start(env={"KEEP_SILENT": "1", "GRACE_MS": "300"})
    clients = []
    for path in ("/never", "/stream", "/never", "/stream?flood=1&size=8000&every=0"):
        clients.append(server.connect())
        clients[-1].send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
    server.until(lambda counts: counts["kept"] == 4)
    begin = time.monotonic()
    assert server.stop() == 0
    assert 0.2 < time.monotonic() - begin < 1.5 + SLACK
    assert "hangups=4 kept=0" in server.out


def test_stopping_under_load_is_clean(start):
    server = start("threads=2")
    end = threading.Event()

    def load():
        while not end.is_set():
            with contextlib.suppress(OSError, EOFError):
                with server.connect() as client:
                    for _ in range(20):
                        client.send("GET /later?ms=1 HTTP/1.1\r\nHost: a\r\n\r\n" + GET)
                        client.answer()
                        client.answer()

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(1.0)
    assert server.stop() == 0
    end.set()
    for thread in threads:
        thread.join()
