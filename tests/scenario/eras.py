"""The two eras of the protocol over HTTP, spoken by hand: with a handshake and a session, and without either.

What a tool answers must not depend on the era, so stories about tools are told in both.
"""
import json

import harness

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
ERAS = ["handshake", "stateless"]


class Protocol(Exception):
    """A JSON-RPC error: the fault is the protocol's, no tool was reached."""

    def __init__(self, error):
        self.error, self.code = error, error["code"]
        super().__init__(json.dumps(error))


class Caller(harness.Http):
    """One principal at one endpoint (/mcp, /mcp/knowledge, /mcp/director)."""

    def __init__(self, url, token, era, path="/mcp"):
        super().__init__(url, token)
        self.era, self.path = era, path
        self.session, self.n = None, 0
        self.result = None  # of the last tools/call: content, isError, _meta

    def post(self, message, headers):
        status, answered, body = self.ask("POST", self.path, json.dumps(message).encode(), {
            "Accept": "application/json, text/event-stream", **headers})
        if answered.get("Content-Type", "").startswith("text/event-stream"):
            lines = [line[5:] for line in body.decode().splitlines() if line.startswith("data:") and line[5:].strip()]
            body = lines[-1]
        return status, answered, json.loads(body) if body else None

    def prepared(self, method, params=None):
        """The message of a request and the headers that it needs."""
        self.n += 1
        message = {"jsonrpc": "2.0", "id": self.n, "method": method, "params": dict(params or {})}
        if self.era == "handshake":
            headers = self.greeted()
        else:
            message["params"]["_meta"] = {"io.modelcontextprotocol/protocolVersion": MODERN,
                                          "io.modelcontextprotocol/clientCapabilities": {}}
            headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            if "name" in message["params"]:
                headers["Mcp-Name"] = message["params"]["name"]
        return message, headers

    def rpc(self, method, params=None):
        message, headers = self.prepared(method, params)
        _, _, answer = self.post(message, headers)
        if "error" in answer:
            raise Protocol(answer["error"])
        return answer["result"]

    def says_and_leaves(self, tool, arguments):
        """One call whose answer is never read."""
        message, headers = self.prepared("tools/call", {"name": tool, "arguments": arguments})
        self.ask("GET", "/api/v1/health")  # there is a connection
        self.connection.request("POST", self.path, json.dumps(message).encode(), {
            "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self.token}", **headers})

    def greeted(self):
        if self.session is None:
            _, answered, _ = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}}, {})
            self.session = answered["Mcp-Session-Id"]
            self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, self.greeted())
        return {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": LEGACY}

    def envelope(self, tool, arguments):
        self.result = self.rpc("tools/call", {"name": tool, "arguments": arguments})
        envelope = self.result["structuredContent"]
        assert json.loads(self.result["content"][0]["text"]) == envelope, "text and structure say the same"
        stands = envelope["ok"] or any(element["ok"] for element in envelope.get("results", []))
        # A client throws away what comes with isError: it must not, as long as something was done.
        if not any("items" in element for element in envelope.get("results", [])):  # complete_tree: parts of one element
            assert self.result.get("isError", False) is not stands, envelope
        return envelope

    def tools(self):
        return {tool["name"]: tool for tool in self.rpc("tools/list")["tools"]}


class Stage:
    """A running server, a person who may everything, and agents, all in one era; projects to play in."""

    def __init__(self, dais, era):
        self.dais, self.era = dais, era
        self.boss = self.caller(dais.admin_token)
        self.ada, self.bob = self.agent("ada"), self.agent("bob")

    def caller(self, token, path="/mcp"):
        caller = Caller(self.dais.url, token, self.era, path)
        self.dais.opened.append(caller)
        return caller

    def agent(self, name, capabilities="read write-items write-notes advance manage-dependencies", path="/mcp"):
        return self.caller(self.dais.new_token(f"{name}-{self.dais.token_count}", capabilities), path)

    def project(self, rules=None):
        root = self.boss.item("Harbour", type="project")
        if rules is not None:
            self.boss.rules(root, rules)
        return root

    def events(self, of=None, type=None):
        """Everything on record up to now, oldest first: of one item, of one type."""
        marker = self.boss.item("marker")
        with self.dais.follow("events", "--json", "--since", "0") as lines:
            found = []
            for line in lines:
                event = json.loads(line)
                if event.get("itemId") == marker:
                    break
                found.append(event)
        return [event for event in found if of in (None, event.get("itemId"), event.get("entityId")) and type in (None, event["type"])]

    def everything(self):
        """What an export holds: equal before and after means that nothing was stored, not even an event."""
        return self.dais.run("export", "-", check=0).stdout
