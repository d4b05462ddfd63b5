"""A model that needs no account: it speaks the four protocols the agents use and answers what the prompt scripts.

    with ModelServer() as model:
        … model.url, model.key …            "@@say hello" as a prompt is answered with "hello"
        model.requests[-1]["step"]          what was asked, and which step answered it

See model_script.py for the steps and model_wire.py for the protocols.
"""
import json

from loopback import Handler, Loopback
from model_script import BadScript, Reply, Scripts, UNSCRIPTED
from model_wire import DIALECTS, Messages

KEY = "key-of-the-tests"


class Cut(Exception):
    """The connection shall end here, in the middle of the answer."""


class ModelHandler(Handler):
    def route(self, path, body):
        owner = self.server.owner
        dialect = next((one for one in DIALECTS if one.takes(self.command, path)), None)
        if dialect is None:
            owner.note(method=self.command, path=path, protocol=None)
            self.beside(path)
            return
        voice = dialect(body, path, owner.number)
        tools = voice.tools()
        reply, step = self.reply(voice, tools)
        entry = owner.note(method=self.command, path=path, protocol=dialect.name, model=voice.model, step=step, body=body,
                           tools=[f"{namespace}__{name}" if namespace else name for name, namespace in tools],
                           outputs=[text for role, text in voice.conversation() if role == "output"])
        self.play(voice, reply, entry)

    def beside(self, path):
        """What programs ask for beside the answer of the model."""
        if self.command == "POST" and path.endswith("count_tokens"):
            self.send_json(200, {"input_tokens": 42})
        elif self.command == "POST" and path.endswith(":countTokens"):
            self.send_json(200, {"totalTokens": 42})
        elif self.command in ("GET", "HEAD") and path.endswith("/models"):
            self.send_json(200, {"object": "list", "data": [{"id": "fake-1", "object": "model"}]})
        elif self.command in ("GET", "HEAD") and path == "/":
            self.send_json(200, {})
        else:
            self.send_json(404, {"error": {"message": "not found", "type": "not_found_error", "code": "not_found"}})

    def reply(self, voice, tools):
        owner = self.server.owner
        if not self.has_key():
            return Reply([], status=401), None
        if voice.is_helper():
            wants_json = "json" in json.dumps(voice.body.get("generationConfig", {})).lower()
            reply, step = owner.scripts_answer(voice.conversation(), tools)
            # Failures of the server meet the helper calls, too; steps do not.
            return (reply, step) if reply.status != 200 else (Reply([("piece", "{}" if wants_json else UNSCRIPTED)]), None)
        return owner.scripts_answer(voice.conversation(), tools)

    def has_key(self):
        accepted = self.server.owner.accepts
        shown = self.headers.get("authorization", "").removeprefix("Bearer ")
        return accepted in (shown, self.headers.get("x-api-key"), self.headers.get("x-goog-api-key"))

    def play(self, voice, reply, entry):
        owner = self.server.owner
        if reply.end == "drop":
            self.cut(entry)
        elif reply.status != 200:
            headers = {"retry-after": reply.retry_after} if reply.retry_after else {}
            if isinstance(voice, Messages) and owner.is_final:
                headers["x-should-retry"] = "false"
            self.send_json(reply.status, voice.error(reply), **headers)
        elif not voice.is_streaming():
            self.send_json(200, voice.whole(reply))
        else:
            self.stream(voice, reply, entry)

    def stream(self, voice, reply, entry):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("request-id", f"req_{self.server.owner.number()}")
        self.end_headers()
        try:
            self.perform(voice, reply)
            self.wfile.write(b"0\r\n\r\n")
        except (Cut, BrokenPipeError, ConnectionResetError):
            self.cut(entry)

    def perform(self, voice, reply):
        spoken = 0
        for text, is_word in voice.stream(reply):
            self.chunk(text)
            if not is_word:
                continue
            spoken += 1
            if reply.pause and self.peer_left(reply.pause):
                raise Cut
            if reply.end != "whole" and spoken == reply.words:
                self.come_to(reply, voice)
                return

    def come_to(self, reply, voice):
        """The end that was scripted instead of the good one."""
        if reply.end == "error":
            self.chunk(voice.broken(reply))
            return
        if reply.end == "early":
            return
        if reply.end == "hang":
            while not self.peer_left(1):
                pass
        raise Cut

    def chunk(self, text):
        raw = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))

    def cut(self, entry):
        self.close_connection = True
        self.server.owner.amend(entry, cut=True)


class ModelServer(Loopback):
    """`is_final` tells Claude not to retry what failed."""
    handler = ModelHandler
    key = KEY

    def __init__(self, log=None, is_final=False):
        super().__init__(log)
        self.is_final = is_final
        self.accepts = KEY
        self.scripts = Scripts()
        self.count = 0

    def number(self):
        with self.changed:
            self.count += 1
            return self.count

    def scripts_answer(self, conversation, tools):
        try:
            with self.changed:
                return self.scripts.answer(conversation, tools)
        except BadScript as mistake:
            self.mistakes.append(str(mistake))
            return Reply([], status=400, kind="bad_script"), None
