"""One conversation with an agent's program over its own protocol, without dais in between.

All sessions look alike, so that a check can run on each of them, and later on one that goes through the product:
start(), turn(prompt, …) → Turn, end(); `native` names the conversation for a later process.
"""
import dataclasses
import time
import uuid

from child import Child, Ended, Silence

SECONDS = 90  # for one answer of a program on a loaded machine
CLIENT = {"name": "tests", "title": "tests", "version": "1.0.0"}


@dataclasses.dataclass
class Turn:
    outcome: str = ""  # completed, interrupted or failed
    error: str = ""
    pieces: list = dataclasses.field(default_factory=list)  # of the answer's text, as they came
    thoughts: list = dataclasses.field(default_factory=list)
    asked: list = dataclasses.field(default_factory=list)  # what the program wanted to be allowed
    tools: dict = dataclasses.field(default_factory=dict)  # id → last status
    usage: dict = dataclasses.field(default_factory=dict)
    signs: list = dataclasses.field(default_factory=list)  # that all is not as well as the outcome says

    final: list = dataclasses.field(default_factory=list)  # the text as the program gave it at the end, where it does

    @property
    def text(self):
        return "".join(self.final or self.pieces)


class Session:
    """A subclass has begin(), say(prompt), cut(), take(line) for its protocol; take() sets turn.outcome at the end."""

    def __init__(self, agent, place, allows=True):
        self.agent = agent
        self.place = place
        self.allows = allows  # the answer to whatever the program asks; None: there is none
        self.open = []  # ids of questions without an answer
        self.turn_ = Turn()
        self.ids = 0
        self.answers = {}

    def start(self):
        self.child = Child(self.agent.command(self.place), self.agent.env(self.place), self.place.repo, self.place.transcript)
        self.begin()
        return self

    def turn(self, prompt, interrupt_when=None, when=None, then=None):
        """Say it and follow the turn to its end. Interrupt as soon as interrupt_when(turn) holds, or do then() once when(turn) does."""
        turn = self.turn_ = Turn()
        self.say(prompt)
        self.follow(lambda: turn.outcome, SECONDS, when or interrupt_when, then or self.cut)
        return turn

    def follow(self, is_over, seconds, when=None, then=None):
        until = time.monotonic() + seconds
        while not is_over():
            if when is not None and when(self.turn_):
                when = None
                then()
            try:
                self.take(self.child.receive(min(until - time.monotonic(), 0.2)))
            except Silence:
                if time.monotonic() > until:
                    raise Silence(f"not over after {seconds} s: {self.turn_}") from None
            except Ended as end:
                self.turn_.outcome, self.turn_.error = "failed", str(end)
                if not is_over():
                    raise

    def respond(self, line, envelope):
        answer = self.reply(line["method"], line["params"])
        if self.allows is None and "error" not in answer:
            self.open.append(line["id"])
            return
        self.child.send({**envelope, **answer})

    def request(self, method, params, wait=True, **envelope):
        """A JSON-RPC request; with `wait` its answer, which has to be a result."""
        self.ids += 1
        own = self.ids
        self.child.send({**envelope, "id": own, "method": method, "params": params})
        if not wait:
            return own
        self.follow(lambda: own in self.answers, SECONDS)
        answer = self.answers.pop(own)
        if "error" in answer:
            raise Ended(f"{method}: {answer['error']}")
        return answer["result"]

    def steer(self, text):
        """Say something more to the running turn; False where the program has no way for that."""
        return False

    def end(self):
        return self.child.end()


class Acp(Session):
    """Agent Client Protocol 1."""

    def rpc(self, method, params, wait=True):
        return self.request(method, params, wait, jsonrpc="2.0")

    def begin(self):
        self.session = None
        self.prompt_id = None
        self.told = self.rpc("initialize", {"protocolVersion": 1, "clientInfo": CLIENT, "clientCapabilities": {
            "fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False, "elicitation": {"form": {}}}})
        servers = []
        if self.place.mcp is not None:
            servers = [{"type": "http", "name": "dais", "url": self.place.mcp.endpoint,
                        "headers": [{"name": "Authorization", "value": f"Bearer {self.place.token}"}]}]
        where = {"cwd": str(self.place.repo), "mcpServers": servers}
        if self.place.resume:
            can_resume = "resume" in self.told["agentCapabilities"].get("sessionCapabilities", {})
            self.rpc("session/resume" if can_resume else "session/load", {"sessionId": self.place.resume, **where})
            self.session = self.place.resume
        else:
            self.session = self.rpc("session/new", where)["sessionId"]
        self.native = self.session
        if self.agent.mode is not None:
            self.rpc("session/set_mode", {"sessionId": self.session, "modeId": self.agent.mode})

    def say(self, prompt):
        self.prompt_id = self.rpc("session/prompt", {"sessionId": self.session, "prompt": [{"type": "text", "text": prompt}]}, wait=False)

    def cut(self):
        for own in self.open:  # some wait for that before they stop
            self.child.send({"jsonrpc": "2.0", "id": own, "result": {"outcome": {"outcome": "cancelled"}}})
        self.child.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": self.session}})

    def steer(self, text):
        if self.agent.steering is None:
            return False
        method, name, value = self.agent.steering(text)
        self.rpc(method, {"sessionId": self.session, name: value}, wait=False)
        return True

    def take(self, line):
        if "method" not in line:
            if line.get("id") == self.prompt_id:
                self.over(line)
            else:
                self.answers[line.get("id")] = line
        elif "id" in line:
            self.respond(line, {"jsonrpc": "2.0", "id": line["id"]})
        elif line["method"] == "session/update" and line["params"]["sessionId"] == self.session:
            self.update(line["params"]["update"])

    def over(self, line):
        if "error" in line:
            self.turn_.outcome, self.turn_.error = "failed", str(line["error"])
            return
        result = line["result"]
        self.turn_.usage = self.spent(result)
        if not any(self.turn_.usage.values()):
            self.turn_.signs.append("nothing was spent")
        self.turn_.outcome = "interrupted" if result["stopReason"] == "cancelled" else "completed"

    @staticmethod
    def spent(result):
        """The tokens of the turn, wherever this program tells them."""
        meta = result.get("_meta") or {}
        told = result.get("usage") or meta.get("usage") or (meta.get("quota") or {}).get("token_count") or {}
        return {name: value for name, value in told.items() if isinstance(value, int)}

    def reply(self, method, params):
        if method != "session/request_permission":
            return {"error": {"code": -32601, "message": f"not supported: {method}"}}
        self.turn_.asked.append(params["toolCall"].get("title") or params["toolCall"]["toolCallId"])
        wanted = ("allow_once", "allow_always") if self.allows else ("reject_once", "reject_always")
        kinds = {option["kind"]: option["optionId"] for option in reversed(params["options"])}
        chosen = next((kinds[kind] for kind in wanted if kind in kinds), None)
        return {"result": {"outcome": {"outcome": "selected", "optionId": chosen}}}

    def update(self, update):
        kind = update["sessionUpdate"]
        if kind == "agent_message_chunk" and (update.get("messageId") or not self.agent.only_identified_text):
            self.turn_.pieces.append(update["content"].get("text", ""))
        elif kind == "agent_thought_chunk":
            self.turn_.thoughts.append(update["content"].get("text", ""))
        elif kind in ("tool_call", "tool_call_update"):
            self.turn_.tools[update["toolCallId"]] = update.get("status") or self.turn_.tools.get(update["toolCallId"], "pending")
        elif kind == "session_info_update":
            status = ((update.get("_meta") or {}).get("codex") or {}).get("threadStatus") or {}
            if status.get("type") == "systemError":
                self.turn_.signs.append("a system error")


class Codex(Session):
    """codex app-server."""
    outcomes = {"completed": "completed", "interrupted": "interrupted", "failed": "failed"}

    def begin(self):
        self.native_turn = None
        self.told = self.request("initialize", {"clientInfo": CLIENT, "capabilities": {"experimentalApi": True}})
        self.child.send({"method": "initialized"})
        config = {}
        if self.place.mcp is not None:
            config = {"mcp_servers": {"dais": {"url": self.place.mcp.endpoint, "required": True, "default_tools_approval_mode": "approve",
                                               "http_headers": {"Authorization": f"Bearer {self.place.token}"}}}}
        settings = {"cwd": str(self.place.repo), "approvalPolicy": "untrusted", "sandbox": "workspace-write", "config": config}
        if self.place.resume:
            self.request("thread/resume", {"threadId": self.place.resume, "excludeTurns": True, **settings})
            self.thread = self.place.resume
        else:
            self.thread = self.request("thread/start", settings)["thread"]["id"]
        self.native = self.thread

    def say(self, prompt):
        self.native_turn = self.request("turn/start", {"threadId": self.thread, "input": [{"type": "text", "text": prompt}],
                                                       "approvalPolicy": "untrusted", "sandboxPolicy": {"type": "workspaceWrite"}})["turn"]["id"]

    def cut(self):
        self.request("turn/interrupt", {"threadId": self.thread, "turnId": self.native_turn}, wait=False)

    def steer(self, text):
        self.request("turn/steer", {"threadId": self.thread, "expectedTurnId": self.native_turn, "input": [{"type": "text", "text": text}]},
                     wait=False)
        return True

    def take(self, line):
        method, params = line.get("method"), line.get("params", {})
        if method is None:
            self.answers[line["id"]] = line
        elif "id" in line:
            self.respond(line, {"id": line["id"]})
        elif method == "item/agentMessage/delta":
            self.turn_.pieces.append(params["delta"])
        elif method == "item/reasoning/summaryTextDelta":
            self.turn_.thoughts.append(params["delta"])
        elif method in ("item/started", "item/completed"):
            item = params["item"]
            if item["type"] in ("commandExecution", "fileChange", "mcpToolCall"):
                self.turn_.tools[item["id"]] = item["status"]
        elif method == "thread/tokenUsage/updated":
            self.turn_.usage = params["tokenUsage"]
        elif method == "turn/completed" and params["threadId"] == self.thread:
            done = params["turn"]
            self.turn_.error = str(done.get("error") or "")
            self.turn_.outcome = self.outcomes[done["status"]]

    def reply(self, method, params):
        if method == "mcpServer/elicitation/request":
            self.turn_.asked.append(params["message"])
            return {"result": {"action": "accept" if self.allows else "decline", "content": {} if self.allows else None, "_meta": None}}
        if not method.endswith("/requestApproval"):
            return {"error": {"code": -32601, "message": f"not supported: {method}"}}
        self.turn_.asked.append(params.get("command") or params["itemId"])
        return {"result": {"decision": "accept" if self.allows else "decline"}}


class Claude(Session):
    """claude in stream-json."""

    def control(self, subtype, wait=True, **members):
        own = f"req_{uuid.uuid4().hex[:8]}"
        self.child.send({"type": "control_request", "request_id": own, "request": {"subtype": subtype, **members}})
        if not wait:
            return None
        self.follow(lambda: own in self.answers, SECONDS)
        return self.answers.pop(own)

    def begin(self):
        servers = {}
        if self.place.mcp is not None:
            servers = {"mcpServers": {"dais": {"type": "http", "url": self.place.mcp.endpoint, "alwaysLoad": True, "timeout": 60000,
                                               "headers": {"Authorization": f"Bearer {self.place.token}"}}}}
        self.told = self.control("initialize", **servers)["response"]

    def say(self, prompt):
        self.child.send({"type": "user", "message": {"role": "user", "content": prompt}, "parent_tool_use_id": None, "session_id": "",
                         "uuid": str(uuid.uuid4())})

    def steer(self, text):
        self.say(text)
        return True

    def cut(self):
        self.control("interrupt", wait=False)

    def take(self, line):
        kind = line.get("type")
        if kind == "control_response":
            self.answers[line["response"]["request_id"]] = line["response"]
        elif kind == "control_request":
            answer = self.reply(line["request"])
            if self.allows is not None:
                self.child.send({"type": "control_response", "response": {"request_id": line["request_id"], **answer}})
        elif kind == "stream_event":
            delta = line["event"].get("delta", {})
            if delta.get("type") == "text_delta":
                self.turn_.pieces.append(delta["text"])
            elif delta.get("type") == "thinking_delta":
                self.turn_.thoughts.append(delta["thinking"])
        elif kind in ("assistant", "user") and isinstance(line["message"]["content"], list):
            self.blocks(line["message"]["content"], kind == "assistant" and not line.get("parent_tool_use_id"))
        elif kind == "result":
            self.over(line)

    def blocks(self, blocks, is_answer):
        for block in blocks:
            if block["type"] == "text" and is_answer:
                self.turn_.final.append(block["text"])
            elif block["type"] == "tool_use":
                self.turn_.tools[block["id"]] = "running"
            elif block["type"] == "tool_result":
                self.turn_.tools[block["tool_use_id"]] = "failed" if block.get("is_error") else "completed"

    def reply(self, request):
        if request["subtype"] != "can_use_tool":
            return {"subtype": "error", "error": f"not supported: {request['subtype']}"}
        self.turn_.asked.append(request["tool_name"])
        allow = {"behavior": "allow", "updatedInput": request["input"]}
        return {"subtype": "success", "response": allow if self.allows else {"behavior": "deny", "message": "not allowed here"}}

    def over(self, line):
        self.native = line["session_id"]
        self.turn_.usage = line.get("usage", {})
        if (line.get("terminal_reason") or "").startswith("aborted_"):
            self.turn_.outcome = "interrupted"
        elif line["is_error"] or line["subtype"] != "success":
            self.turn_.outcome, self.turn_.error = "failed", str(line.get("result") or line.get("errors"))
        else:
            self.turn_.outcome = "completed"


class Pi(Session):
    """pi in RPC mode: lines with a type, no JSON-RPC."""

    def ask(self, kind, wait=True, **members):
        self.ids += 1
        own = f"r{self.ids}"
        self.child.send({"id": own, "type": kind, **members})
        if not wait:
            return None
        self.follow(lambda: own in self.answers, SECONDS)
        answer = self.answers.pop(own)
        if not answer["success"]:
            raise Ended(f"{kind}: {answer['error']}")
        return answer.get("data")

    def begin(self):
        self.told = self.ask("get_state")
        self.native = self.told["sessionFile"]

    def say(self, prompt):
        self.last = {}
        self.ask("prompt", message=prompt)

    def steer(self, text):
        self.ask("steer", wait=False, message=text)
        return True

    def cut(self):
        for own in self.open:  # an extension that waits for its answer would hold the turn for ever
            self.child.send({"type": "extension_ui_response", "id": own, "cancelled": True})
        self.ask("abort", wait=False)

    def take(self, line):
        kind = line.get("type")
        if kind == "response":
            self.answers[line.get("id")] = line
        elif kind == "message_update":
            event = line["assistantMessageEvent"]
            if event["type"] == "text_delta":
                self.turn_.pieces.append(event["delta"])
            elif event["type"] == "thinking_delta":
                self.turn_.thoughts.append(event["delta"])
        elif kind == "message_end" and line["message"]["role"] == "assistant":
            self.last = line["message"]
            self.turn_.usage = self.last.get("usage", {})
        elif kind == "tool_execution_start":
            self.turn_.tools[line["toolCallId"]] = "running"
        elif kind == "tool_execution_end":
            self.turn_.tools[line["toolCallId"]] = "failed" if line["isError"] else "completed"
        elif kind == "extension_ui_request" and line["method"] == "select":
            self.turn_.asked.append(line["title"])
            if self.allows is None:
                self.open.append(line["id"])
            else:
                self.child.send({"type": "extension_ui_response", "id": line["id"], "value": "allow_once" if self.allows else "deny"})
        elif kind == "agent_settled":
            self.over(line)

    def over(self, line):
        stop = self.last.get("stopReason")
        if line.get("aborted") or stop == "aborted":
            self.turn_.outcome = "interrupted"
        elif stop == "error":
            self.turn_.outcome, self.turn_.error = "failed", str(self.last.get("errorMessage"))
        else:
            self.turn_.outcome = "completed"
