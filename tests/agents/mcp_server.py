"""A small MCP server with a bearer check, for the agents' own MCP clients.

Three tools: `echo` (read-only, structured result), `note` (not read-only: programs ask before they call it) and `fail`.
"""
from loopback import Handler, Loopback

TOKEN = "token-of-the-tests"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    {"name": "echo", "description": "Gives the text back.", "inputSchema": TEXT, "annotations": {"readOnlyHint": True}},
    {"name": "note", "description": "Keeps the text.", "inputSchema": TEXT},
    {"name": "fail", "description": "Always fails.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
]


def call(params):
    name, text = params.get("name"), (params.get("arguments") or {}).get("text", "")
    if name in ("echo", "note"):
        value = {"echo": text}
        return {"content": [{"type": "text", "text": f"{name}: {text}"}], "structuredContent": value}
    return {"content": [{"type": "text", "text": "this tool always fails"}], "isError": True}


METHODS = {
    "initialize": lambda params: {"protocolVersion": params.get("protocolVersion", "2025-06-18"), "capabilities": {"tools": {}},
                                  "serverInfo": {"name": "mcp-of-the-tests", "version": "1.0.0"}},
    "ping": lambda _: {},
    "tools/list": lambda _: {"tools": TOOLS},
    "tools/call": call,
}


class McpHandler(Handler):
    def route(self, path, body):
        entry = {"http": self.command, "method": body.get("method"), "params": body.get("params"),
                 "version": self.headers.get("mcp-protocol-version"), "session": self.headers.get("mcp-session-id")}
        if self.headers.get("authorization") != f"Bearer {TOKEN}":
            self.server.owner.note(**entry, status=401)
            self.send_json(401, {"error": "unauthorized"}, www_authenticate="Bearer")
            return
        self.server.owner.note(**entry, status=200)
        if path != "/mcp":
            self.send_json(404, {"error": "not found"})
        elif self.command == "GET":
            self.send_json(405, {"error": "no stream here"}, allow="POST, DELETE")
        elif self.command == "DELETE":
            self.send_json(200, {})
        elif "id" not in body:
            self.send_json(202, None)
        else:
            self.answer(body)

    def answer(self, body):
        method = METHODS.get(body.get("method"))
        answer = {"jsonrpc": "2.0", "id": body["id"]}
        if method is None:
            answer["error"] = {"code": -32601, "message": f"method not found: {body.get('method')}"}
        else:
            answer["result"] = method(body.get("params") or {})
        self.send_json(200, answer, mcp_session_id="session-of-the-tests")


class McpServer(Loopback):
    handler = McpHandler
    token = TOKEN

    @property
    def endpoint(self):
        return f"{self.url}/mcp"

    def calls(self, tool):
        """The arguments of each call of that tool."""
        return [entry["params"]["arguments"] for entry in self.requests
                if entry["method"] == "tools/call" and entry["status"] == 200 and entry["params"]["name"] == tool]
