"""The four model protocols: how each writes down a conversation, a stream of events, a whole answer, an error.

A dialect yields its stream as (text, is_word): the server may pause, hang or cut after a word.
"""
import json
import re

from model_script import Reply

# What every answer is said to have cost. Input includes what was cached, output includes reasoning; how each
# protocol counts is its own affair.
INPUT, CACHED, CACHE_WRITTEN, OUTPUT, REASONING = 111, 64, 30, 22, 5
CODES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
         413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 503: "api_error", 529: "overloaded_error"}


def words(text):
    return re.findall(r"\S+\s*", text) or [text]


def text_of(content):
    """The text of a message whose content is a string or a list of parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [] if isinstance(part.get("text"), str))


def sse(event, value):
    return f"event: {event}\ndata: {json.dumps(value)}\n\n"


def data(value):
    return f"data: {json.dumps(value)}\n\n"


class Dialect:
    def __init__(self, body, path, number):
        self.body = body
        self.path = path
        self.number = number  # a function that counts up: the source of all ids
        self.model = body.get("model", "")

    def is_streaming(self):
        return bool(self.body.get("stream"))

    def is_helper(self):
        """A call that the program makes for its own ends, with nothing of the script in it."""
        return False

    def message(self, reply):
        return f"fake {reply.status} error" if reply.status != 200 else f"fake {reply.kind}"


class Responses(Dialect):
    """OpenAI Responses (Codex)."""
    name = "responses"

    @staticmethod
    def takes(method, path):
        return method == "POST" and path.endswith("/responses")

    def conversation(self):
        items = self.body.get("input", [])
        if isinstance(items, str):
            return [("user", items)]
        turns = []
        for item in items:
            if item.get("role") == "user":
                turns.append(("user", text_of(item.get("content"))))
            elif item.get("type", "").endswith("_output"):
                turns.append(("output", text_of(item.get("output"))))
        return turns

    def tools(self):
        """Models that Codex knows get theirs as an item of the input instead of a member of the body."""
        found, lists = [], [self.body.get("tools") or []]
        if isinstance(self.body.get("input"), list):
            lists += [item["tools"] for item in self.body["input"] if isinstance(item.get("tools"), list)]
        for tool in (tool for tools in lists for tool in tools):
            if tool.get("type") == "namespace":
                found += [(inner["name"], tool["name"]) for inner in tool.get("tools", [])]
            elif "name" in tool:
                found.append((tool["name"], ""))
        return found

    def response(self, status, output, **more):
        return {"id": self.id, "object": "response", "status": status, "model": self.model, "output": output, **more}

    def stream(self, reply):
        self.id, count, output = f"resp_{self.number()}", 0, []

        def event(kind, **members):
            nonlocal count
            count += 1
            return sse(kind, {"type": kind, "sequence_number": count - 1, **members})

        yield event("response.created", response=self.response("in_progress", [])), False
        for index, part in enumerate(reply.parts):
            yield from getattr(self, "stream_" + part[0])(event, index, output, *part[1:])
        status = {"length": "incomplete"}.get(reply.finish, "completed")
        more = {"incomplete_details": {"reason": "max_output_tokens"}} if status == "incomplete" else {}
        yield event(f"response.{status}", response=self.response(status, output, usage=self.usage(), **more)), False

    def stream_say(self, event, index, output, text, pieces=None):
        at = {"item_id": f"msg_{self.number()}", "output_index": index, "content_index": 0}
        item = {"type": "message", "id": at["item_id"], "role": "assistant"}
        yield event("response.output_item.added", output_index=index, item={**item, "status": "in_progress", "content": []}), False
        yield event("response.content_part.added", **at, part={"type": "output_text", "text": "", "annotations": []}), False
        for word in pieces or words(text):
            yield event("response.output_text.delta", **at, delta=word), True
        yield event("response.output_text.done", **at, text=text), False
        output.append({**item, "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]})
        yield event("response.output_item.done", output_index=index, item=output[-1]), False

    def stream_piece(self, event, index, output, text):
        yield from self.stream_say(event, index, output, text, [text])

    def stream_think(self, event, index, output, text):
        at = {"item_id": f"rs_{self.number()}", "output_index": index, "summary_index": 0}
        item = {"type": "reasoning", "id": at["item_id"]}
        yield event("response.output_item.added", output_index=index, item={**item, "summary": []}), False
        yield event("response.reasoning_summary_part.added", **at, part={"type": "summary_text", "text": ""}), False
        for word in words(text):
            yield event("response.reasoning_summary_text.delta", **at, delta=word), True
        yield event("response.reasoning_summary_text.done", **at, text=text), False
        output.append({**item, "summary": [{"type": "summary_text", "text": text}]})
        yield event("response.output_item.done", output_index=index, item=output[-1]), False

    def stream_call(self, event, index, output, name, namespace, arguments):
        item = {"type": "function_call", "id": f"fc_{self.number()}", "call_id": f"call_{self.number()}", "name": name,
                **({"namespace": namespace} if namespace else {})}
        yield from self.stream_tool(event, index, output, item, "arguments", "response.function_call_arguments", arguments)

    def stream_custom(self, event, index, output, name, text):
        item = {"type": "custom_tool_call", "id": f"ctc_{self.number()}", "call_id": f"call_{self.number()}", "name": name}
        yield from self.stream_tool(event, index, output, item, "input", "response.custom_tool_call_input", text)

    @staticmethod
    def stream_tool(event, index, output, item, member, kind, text):
        at = {"item_id": item["id"], "output_index": index}
        yield event("response.output_item.added", output_index=index, item={**item, member: "", "status": "in_progress"}), False
        yield event(f"{kind}.delta", **at, delta=text), False
        yield event(f"{kind}.done", **at, **{member: text}), False
        output.append({**item, member: text, "status": "completed"})
        yield event("response.output_item.done", output_index=index, item=output[-1]), False

    def whole(self, reply):
        *_, (last, _) = self.stream(reply)
        return json.loads(last.split("data: ")[1])["response"]

    def broken(self, reply):
        return sse("response.failed", {"type": "response.failed", "sequence_number": 99, "response": self.response(
            "failed", [], error={"code": reply.kind, "message": self.message(reply)})})

    def error(self, reply):
        kind = reply.kind or CODES.get(reply.status, "api_error")
        return {"error": {"message": self.message(reply), "type": kind, "code": kind, "param": None}}

    @staticmethod
    def usage():
        return {"input_tokens": INPUT, "input_tokens_details": {"cached_tokens": CACHED}, "output_tokens": OUTPUT,
                "output_tokens_details": {"reasoning_tokens": REASONING}, "total_tokens": INPUT + OUTPUT}


class Chat(Dialect):
    """OpenAI chat completions (Grok, OpenCode, Pi)."""
    name = "chat"
    finishes = {"stop": "stop", "tool": "tool_calls", "length": "length", "refusal": "content_filter"}

    @staticmethod
    def takes(method, path):
        return method == "POST" and path.endswith("/chat/completions")

    def conversation(self):
        roles = {"user": "user", "tool": "output"}
        return [(roles[m["role"]], text_of(m.get("content"))) for m in self.body.get("messages", []) if m.get("role") in roles]

    def tools(self):
        return [(tool["function"]["name"], "") for tool in self.body.get("tools") or [] if "function" in tool]

    def is_helper(self):
        return not self.body.get("tools")

    def chunk(self, delta=None, finish=None, **more):
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        return data({"id": self.id, "object": "chat.completion.chunk", "created": 1, "model": self.model, "choices": choices, **more})

    def stream(self, reply):
        self.id, calls = f"chatcmpl-{self.number()}", 0
        yield self.chunk({"role": "assistant", "content": ""}), False
        for kind, *rest in reply.parts:
            if kind == "call":
                name, _, arguments = rest
                at = {"index": calls, "id": f"call_{self.number()}", "type": "function"}
                yield self.chunk({"tool_calls": [{**at, "function": {"name": name, "arguments": ""}}]}), False
                yield self.chunk({"tool_calls": [{"index": calls, "function": {"arguments": arguments}}]}), False
                calls += 1
                continue
            member = "reasoning_content" if kind == "think" else "content"
            for word in [rest[0]] if kind == "piece" else words(rest[0]):
                yield self.chunk({member: word}), True
        yield self.chunk({}, self.finishes[reply.finish]), False
        yield self.chunk(usage=self.usage()), False
        yield "data: [DONE]\n\n", False

    def whole(self, reply):
        text = "".join(part[1] for part in reply.parts if part[0] in ("say", "piece"))
        calls = [{"id": f"call_{self.number()}", "type": "function", "function": {"name": part[1], "arguments": part[3]}}
                 for part in reply.parts if part[0] == "call"]
        message = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
        return {"id": f"chatcmpl-{self.number()}", "object": "chat.completion", "created": 1, "model": self.model,
                "choices": [{"index": 0, "message": message, "finish_reason": self.finishes[reply.finish]}], "usage": self.usage()}

    def broken(self, reply):
        return data(self.error(reply))

    error = Responses.error

    @staticmethod
    def usage():
        return {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT,
                "prompt_tokens_details": {"cached_tokens": CACHED}, "completion_tokens_details": {"reasoning_tokens": REASONING}}


class Messages(Dialect):
    """Anthropic Messages (Claude)."""
    name = "messages"
    finishes = {"stop": "end_turn", "tool": "tool_use", "length": "max_tokens", "refusal": "refusal"}

    @staticmethod
    def takes(method, path):
        return method == "POST" and path.endswith("/messages")

    def conversation(self):
        turns = []
        for message in self.body.get("messages", []):
            if message.get("role") != "user":
                continue
            content = message.get("content")
            blocks = content if isinstance(content, list) else []
            turns += [("output", text_of(block.get("content"))) for block in blocks if block.get("type") == "tool_result"]
            if text_of(content):
                turns.append(("user", text_of(content)))
        return turns

    def tools(self):
        return [(tool["name"], "") for tool in self.body.get("tools") or [] if "name" in tool]

    def is_helper(self):
        return not self.body.get("tools")

    def start(self):
        return {"id": f"msg_{self.number()}", "type": "message", "role": "assistant", "model": self.model, "content": [],
                "stop_reason": None, "stop_sequence": None, "usage": self.usage(1)}

    def blocks(self, reply):
        """Of each part: the empty block, the deltas, the full block."""
        for kind, *rest in reply.parts:
            if kind == "think":
                yield ({"type": "thinking", "thinking": "", "signature": ""},
                       [*({"type": "thinking_delta", "thinking": word} for word in words(rest[0])),
                        {"type": "signature_delta", "signature": "c2ln"}],
                       {"type": "thinking", "thinking": rest[0], "signature": "c2ln"})
            elif kind == "call":
                block = {"type": "tool_use", "id": f"toolu_{self.number()}", "name": rest[0]}
                yield ({**block, "input": {}}, [{"type": "input_json_delta", "partial_json": rest[2]}],
                       {**block, "input": json.loads(rest[2])})
            else:
                pieces = [rest[0]] if kind == "piece" else words(rest[0])
                yield ({"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces],
                       {"type": "text", "text": rest[0]})

    def stream(self, reply):
        def event(kind, **members):
            return sse(kind, {"type": kind, **members})

        yield event("message_start", message=self.start()), False
        for index, (empty, deltas, _) in enumerate(self.blocks(reply)):
            yield event("content_block_start", index=index, content_block=empty), False
            for delta in deltas:
                yield event("content_block_delta", index=index, delta=delta), delta["type"] in ("text_delta", "thinking_delta")
            yield event("content_block_stop", index=index), False
        yield event("message_delta", delta={"stop_reason": self.finishes[reply.finish], "stop_sequence": None},
                    usage={"output_tokens": OUTPUT}), False
        yield event("message_stop"), False

    def whole(self, reply):
        return {**self.start(), "content": [block for _, _, block in self.blocks(reply)],
                "stop_reason": self.finishes[reply.finish], "usage": self.usage(OUTPUT)}

    def broken(self, reply):
        return sse("error", self.error(reply))

    def error(self, reply):
        return {"type": "error", "error": {"type": reply.kind or CODES.get(reply.status, "api_error"), "message": self.message(reply)},
                "request_id": f"req_{self.number()}"}

    @staticmethod
    def usage(output):
        return {"input_tokens": INPUT - CACHED - CACHE_WRITTEN, "cache_creation_input_tokens": CACHE_WRITTEN,
                "cache_read_input_tokens": CACHED, "output_tokens": output}


class Gemini(Dialect):
    """Gemini generateContent (Gemini CLI)."""
    name = "gemini"
    finishes = {"stop": "STOP", "tool": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
    statuses = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
                429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}

    @staticmethod
    def takes(method, path):
        return method == "POST" and path.endswith(("enerateContent",))

    def __init__(self, body, path, number):
        super().__init__(body, path, number)
        self.model = path.rsplit("/", 1)[-1].split(":")[0]

    def is_streaming(self):
        return self.path.endswith(":streamGenerateContent")

    def conversation(self):
        turns = []
        for content in self.body.get("contents", []):
            if content.get("role", "user") != "user":
                continue
            parts = content.get("parts", [])
            turns += [("output", json.dumps(part["functionResponse"].get("response"))) for part in parts if "functionResponse" in part]
            if text_of(parts):
                turns.append(("user", text_of(parts)))
        return turns

    def tools(self):
        return [(one["name"], "") for tool in self.body.get("tools") or [] for one in tool.get("functionDeclarations", [])]

    def is_helper(self):
        return not self.tools()

    def part(self, kind, text, namespace=None, arguments=None):
        if kind == "call":
            return {"functionCall": {"name": text, "args": json.loads(arguments)}}
        return {"text": text, **({"thought": True} if kind == "think" else {})}

    def answer(self, parts, finish=None):
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **({"finishReason": finish} if finish else {})}
        return {"candidates": [candidate], "modelVersion": self.model, "responseId": self.id, **({"usageMetadata": self.usage()} if finish else {})}

    def stream(self, reply):
        self.id = f"r{self.number()}"
        for kind, *rest in reply.parts:
            # A thought comes in one piece: clients look for its subject and its body in it.
            for word in words(rest[0]) if kind == "say" else [None]:
                yield data(self.answer([self.part(kind, word or rest[0], *rest[1:])])), kind == "say"
        yield data(self.answer([{"text": ""}], self.finishes[reply.finish])), False

    def whole(self, reply):
        self.id = f"r{self.number()}"
        return self.answer([self.part(kind, *rest) for kind, *rest in reply.parts], self.finishes[reply.finish])

    def broken(self, reply):
        return data(self.error(Reply([], status=503, kind=reply.kind)))

    def error(self, reply):
        return {"error": {"code": reply.status, "message": self.message(reply),
                          "status": reply.kind or self.statuses.get(reply.status, "INTERNAL")}}

    @staticmethod
    def usage():
        return {"promptTokenCount": INPUT, "cachedContentTokenCount": CACHED, "candidatesTokenCount": OUTPUT - REASONING,
                "thoughtsTokenCount": REASONING, "totalTokenCount": INPUT + OUTPUT}


DIALECTS = [Responses, Chat, Messages, Gemini]
