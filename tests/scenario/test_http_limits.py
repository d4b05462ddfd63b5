"""Connections, descriptors and addresses."""
import re
import socket
import time

import pytest

from http_room import Client, GET, SLACK, refused, server, start  # noqa: F401


# ---- limits ----


def test_connections_over_the_limit_get_503(start):
    server = start("connections=10")
    clients = [server.connect() for _ in range(10)]
    for client in clients:
        client.send(GET)
        assert client.answer().status == 200
    with server.connect() as extra:
        extra.send(GET)
        answer = extra.answer()
        assert answer.status == 503 and answer.headers["retry-after"] == "1" and answer.error() == "unavailable"
        assert extra.is_closed()
    clients.pop().sock.close()
    server_recovers(server)
    for client in clients:
        client.send(GET)
        assert client.answer().status == 200
        client.sock.close()


def server_recovers(server):
    end = time.monotonic() + 3 + SLACK
    while server.get("/").status != 200:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_loopback_is_exempt_from_the_limit_per_peer(start):
    server = start("per_peer=2")
    clients = [server.connect() for _ in range(5)]
    for client in clients:
        client.send(GET)
        assert client.answer().status == 200
        client.sock.close()


def own_address():
    """An address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return probe.getsockname()[0]


def test_one_peer_cannot_take_all_connections(start):
    address = own_address()
    if address is None or address.startswith("127."):
        pytest.skip("this machine has loopback only")
    server = start("per_peer=3", addresses=(f"{address}:0",))
    connect = lambda: Client(socket.create_connection((address, server.port), timeout=10))
    clients = [connect() for _ in range(4)]
    for client in clients:
        client.send(GET)
    assert [client.answer().status for client in clients] == [200, 200, 200, 503]
    for client in clients:
        client.sock.close()


def test_running_out_of_descriptors_is_503_and_passes(start):
    server = start(files=64)
    clients = []
    for _ in range(100):
        clients.append(server.connect())
        clients[-1].send(GET)
    statuses = [client.answer().status for client in clients]
    assert set(statuses) == {200, 503} and statuses.count(200) >= 5
    for client in clients:
        client.sock.close()
    server_recovers(server)


# ---- addresses ----


@pytest.mark.parametrize("address", ["127.0.0.1:99999", ":3001", "127.0.0.1", "::1:80", "[::1]", "a b:1"])
def test_a_malformed_address_is_named(address):
    status, text = refused(address)
    assert status == 78 and address in text


def test_a_taken_port_is_named_with_its_holder_and_nothing_stays_bound(start):
    holder = start()
    taken = f"127.0.0.1:{holder.port}"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    begin = time.monotonic()
    status, text = refused(f"127.0.0.1:{free}", taken)
    assert time.monotonic() - begin < 1.0 + SLACK
    assert status == 73 and taken in text and f"process {holder.process.pid}" in text
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", free))


def test_one_server_listens_on_several_addresses_of_both_families(start):
    server = start(addresses=("127.0.0.1:0", "[::1]:0", "localhost:0"))
    for url in server.urls:
        host, port = re.fullmatch(r"http://(.*):(\d+)", url).groups()
        with Client(socket.create_connection((host.strip("[]"), int(port)), timeout=5)) as client:
            client.send(GET)
            assert client.answer().status == 200


def test_a_killed_server_starts_again_at_once_on_its_port(start):
    first = start()
    with first.connect() as client:
        client.send(GET)
        client.answer()
        first.process.kill()
        first.process.wait()
        second = start(addresses=(f"127.0.0.1:{first.port}",))
        assert second.get("/").status == 200
        second.stop()
    first.process.returncode = 0
