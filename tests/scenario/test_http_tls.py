"""The same over TLS."""
import json
import socket
import ssl
import subprocess
import time

import pytest

from http_room import Client, GET, SLACK, post, refused, seconds_until_closed, server, start  # noqa: F401


@pytest.fixture(scope="module")
def pem(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    for name in ("a", "b"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.crt", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                       check=True, capture_output=True)
    return folder


def over_tls(server, pem):
    context = ssl.create_default_context(cafile=f"{pem}/a.crt")
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    return Client(context.wrap_socket(sock, server_hostname="localhost"))


def test_tls_carries_requests_streams_and_hang_ups(start, pem):
    server = start(f"cert={pem}/a.crt", f"key={pem}/a.key")
    assert server.urls[0].startswith("https://")
    with over_tls(server, pem) as client:
        client.send(post("/echo", "x" * 100_000))
        assert client.answer().body == b"x" * 100_000
        client.send("GET /later?ms=20 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.answer().body == b"later"
        client.send("GET /stream?n=3 HTTP/1.1\r\nHost: a\r\n\r\n")
        client.head()
        assert len(list(client.chunks())) == 3
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n")
        assert client.answer().status == 400
    waiting = over_tls(server, pem)
    waiting.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n")
    time.sleep(0.1)
    waiting.sock.close()
    end = time.monotonic() + 5
    while True:
        with over_tls(server, pem) as client:
            client.send("GET /counts HTTP/1.1\r\nHost: a\r\n\r\n")
            counts = json.loads(client.answer().body)
        if counts["hangups"] == 1 and counts["kept"] == 0:
            break
        assert time.monotonic() < end, counts


def test_a_handshake_that_does_not_come_is_closed(start, pem):
    server = start("head_ms=500", f"cert={pem}/a.crt", f"key={pem}/a.key")
    with server.connect() as client:
        assert 0.4 < seconds_until_closed(client) < 0.9 + SLACK


def test_a_wrong_tls_file_is_named(pem):
    (pem / "huge.pem").write_text("x" * 300_000)
    for cert, key, culprit in (("none.crt", "a.key", "none.crt"), ("a.crt", "none.key", "none.key"),
                               ("a.key", "a.key", "a.key"), ("a.crt", "b.key", "b.key"), ("a.crt", "a.crt", "a.crt"),
                               ("huge.pem", "a.key", "huge.pem"), (".", "a.key", str(pem))):
        status, text = refused("127.0.0.1:0", arguments=(f"cert={pem}/{cert}", f"key={pem}/{key}"))
        assert status == 78 and culprit in text, text
