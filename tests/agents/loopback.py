"""What the two servers of these tests have in common: HTTP on a free port of the loopback, a log of requests, an orderly end."""
import http.server
import json
import select
import sys
import threading
import traceback


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection. A subclass has `route(path, body)`, and answers by send_json or by its own means."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        """The server's own log says more."""

    def handle_any(self):
        length = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(length) if length else b""
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            body = {"unreadable": repr(raw[:200])}
        try:
            self.route(self.path.split("?")[0], body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_DELETE = handle_any

    def send_json(self, status, value, **headers):
        text = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, field in {"content-type": "application/json", "content-length": str(len(text)), **headers}.items():
            self.send_header(name.replace("_", "-"), field)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def peer_left(self, seconds):
        """Whether the client closes within that time. Also true when the server is told to stop."""
        until = self.server.owner.stopping
        while seconds > 0 and not until.is_set():
            slice_ = min(seconds, 0.05)
            ready, _, _ = select.select([self.connection], [], [], slice_)
            if ready:
                return self.connection.recv(1) == b""
            seconds -= slice_
        return until.is_set()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError):  # clients may leave as they like
            self.owner.mistakes.append("".join(traceback.format_exception(error)))


class Loopback:
    """A server in a thread of this process. Use as a context manager, or start() and stop()."""
    handler = Handler

    def __init__(self, log=None):
        self.log_file = log
        self.requests = []  # dictionaries, in the order of arrival
        self.mistakes = []  # of the test or of this server, not of the client: there should be none
        self.stopping = threading.Event()
        self.changed = threading.Condition()

    def start(self):
        self.http = Server(("127.0.0.1", 0), self.handler)
        self.http.owner = self
        self.port = self.http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        return self

    def stop(self):
        self.stopping.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def note(self, **members):
        """Log a request. Its credential never gets here."""
        with self.changed:
            self.requests.append(members)
            self.changed.notify_all()
            if self.log_file is not None:
                with open(self.log_file, "a", encoding="utf-8") as log:
                    log.write(json.dumps(members) + "\n")
        return members

    def amend(self, entry, **members):
        """Something that became known about a logged request later."""
        with self.changed:
            entry.update(members)
            self.changed.notify_all()

    def wait_for(self, is_it, seconds=20):
        """The first logged request of which is_it() holds, now or within that time; else None."""
        found = None

        def look():
            nonlocal found
            found = next((entry for entry in self.requests if is_it(entry)), None)
            return found is not None

        with self.changed:
            self.changed.wait_for(look, seconds)
        return found
