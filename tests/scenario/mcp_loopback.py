"""An MCP server over Streamable HTTP on loopback, for clients of ours: it answers, delays, refuses and goes away."""
import http.server
import json
import socket
import sys
import threading


class McpServer:
    """`tools` are functions of the arguments; what one returns is the structured result, or (result, True) for an error.
    `calls` holds every tools/call that arrived, `seen` the headers of every request."""

    def __init__(self, tools, readers=(), token="secret", stream=False, port=0):
        self.tools, self.readers, self.token, self.stream = tools, set(readers), token, stream
        self.sessions, self.calls, self.methods, self.seen = {"s-1"}, [], [], []
        self.connections = {}
        self.refuse_next = self.drop_next = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                outer.connections[self.client_address] = self.connection

            def log_message(self, *_):
                pass

            def do_POST(self):
                outer.post(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, request, client_address):
                if not isinstance(sys.exc_info()[1], ConnectionError):
                    super().handle_error(request, client_address)  # a client that went away is part of the story

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    @property
    def entry(self):
        """As it stands in mcpServers."""
        return {"type": "http", "name": "dais", "url": f"http://127.0.0.1:{self.port}/mcp",
                "headers": [{"name": "Authorization", "value": f"Bearer {self.token}"}]}

    def post(self, handler, message):
        self.seen.append(dict(handler.headers))
        self.methods.append(message["method"])
        if handler.headers["Authorization"] != f"Bearer {self.token}":
            return self.send(handler, 401)
        if message["method"] == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
            return self.answer(handler, message, result, {"Mcp-Session-Id": "s-1"})
        if handler.headers["Mcp-Session-Id"] not in self.sessions:
            self.sessions = {"s-1"}  # the next greeting makes it anew
            return self.send(handler, 404)
        if "id" not in message:
            return self.send(handler, 202)
        if message["method"] == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": name in self.readers}}
                     for name in self.tools]
            return self.answer(handler, message, {"tools": tools})
        return self.call(handler, message)

    def call(self, handler, message):
        self.calls.append(message["params"])
        if self.refuse_next > 0:
            self.refuse_next -= 1
            return self.send(handler, 503, {"Retry-After": "0"})
        if self.drop_next > 0:
            self.drop_next -= 1
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
            return None
        tool = self.tools.get(message["params"]["name"])
        if tool is None:
            return self.json(handler, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "no such tool"}})
        made = tool(message["params"]["arguments"])
        result, is_error = made if isinstance(made, tuple) else (made, False)
        return self.answer(handler, message, {"content": [{"type": "text", "text": json.dumps(result)}],
                                              "structuredContent": result, "isError": is_error})

    def answer(self, handler, message, result, headers=None):
        envelope = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        if not self.stream:
            return self.json(handler, envelope, headers)
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "working"}}
        body = f": hello\n\nevent: message\ndata: {json.dumps(note)}\n\nid: 1\nevent: message\ndata: {json.dumps(envelope)}\n\n"
        return self.send(handler, 200, {"Content-Type": "text/event-stream", **(headers or {})}, body.encode())

    def json(self, handler, envelope, headers=None):
        self.send(handler, 200, {"Content-Type": "application/json", **(headers or {})}, json.dumps(envelope).encode())

    @staticmethod
    def send(handler, status, headers=None, body=b""):
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
        for connection in self.connections.values():
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # ended before
