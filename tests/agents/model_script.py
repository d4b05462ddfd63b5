"""What the model shall answer, written by the test into the prompt itself, so that no side channel is needed.

Each line of a user's message that begins with @@ is a step; step k answers the k-th call of the model since that message.
A later message with steps replaces the script. Where steps run out the answer is plain text: an agent that allows
everything must come to an end.

    @@say TEXT                assistant text, streamed word by word
    @@slow MS TEXT            the same, a pause after each word
    @@think TEXT              reasoning, then "thought."
    @@call NAME JSON          a tool call; NAME is a pattern that must match a whole name in the request's own list of tools
                              (a tool in a namespace is NAMESPACE__NAME there), or is sent as it is when none matches
    @@saycall NAME JSON       text, then the tool call
    @@custom NAME INPUT       a call of a freeform tool (Responses only); \\n in INPUT is a line end
    @@json TEXT               text in one piece
    @@hang TEXT               one word, then silence until the client leaves
    @@half TEXT               two words, then the connection is cut
    @@early TEXT              two words, then the stream ends in good order, but without the events that close it
    @@drop                    the connection is cut before any byte
    @@status CODE [TYPE [RETRY_AFTER]]    an HTTP error
    @@fail TYPE               an error inside the stream
    @@maxtok TEXT             text that ends at the limit of tokens
    @@refuse TEXT             text that ends with a refusal
    @@first N STEP            the first N calls that come here get STEP, later ones the step of the next line
"""
import dataclasses
import re

STEP = re.compile(r"^@@([a-z]+)(?:[ \t]+(.*))?$", re.M)
# What programs add to a user's message on their own account is not the test's.
REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.S)
ENDED = "the script has no further step"
UNSCRIPTED = "a title"


class BadScript(Exception):
    """A step that the server does not know: the test is wrong, and hears so at the end."""


@dataclasses.dataclass
class Reply:
    """One answer of the model. `parts` are ("think", text), ("say", text), ("piece", text), ("call", name, namespace,
    arguments as JSON text) or ("custom", name, input)."""
    parts: list
    finish: str = "stop"  # or "tool", "length", "refusal"
    pause: float = 0.0  # seconds after each word
    end: str = "whole"  # or, after `words`, "cut", "early", "hang", "error"; or, before anything, "drop"
    words: int = 0
    status: int = 200
    kind: str = ""  # of the error
    retry_after: str = ""


def steps_of(text):
    return [(verb, rest or "") for verb, rest in STEP.findall(REMINDER.sub("", text))]


def tool_named(pattern, tools):
    """The first tool whose whole name matches, as (name, namespace)."""
    for name, namespace in tools:
        if re.fullmatch(pattern, f"{namespace}__{name}" if namespace else name):
            return name, namespace
    return pattern, ""


def call(rest, tools):
    pattern, _, arguments = rest.partition(" ")
    return ("call", *tool_named(pattern, tools), arguments or "{}")


def number(word):
    if not word.isdecimal():
        raise BadScript(f"a number was expected, not {word!r}")
    return int(word)


def reply_of(verb, rest, tools):
    first, _, further = rest.partition(" ")
    if verb == "say":
        return Reply([("say", rest)])
    if verb == "slow":
        return Reply([("say", further)], pause=number(first) / 1000)
    if verb == "think":
        return Reply([("think", rest), ("say", "thought.")])
    if verb == "call":
        return Reply([call(rest, tools)], finish="tool")
    if verb == "saycall":
        return Reply([("say", "I will use a tool."), call(rest, tools)], finish="tool")
    if verb == "custom":
        return Reply([("custom", first, further.replace("\\n", "\n"))], finish="tool")
    if verb == "json":
        return Reply([("piece", rest)])
    if verb == "hang":
        return Reply([("say", rest or "waiting for nothing")], end="hang", words=1)
    if verb == "half":
        # Slowly: programs that collect what comes would show nothing of it.
        return Reply([("say", rest or "half of this is lost")], end="cut", words=2, pause=0.05)
    if verb == "early":
        return Reply([("say", rest or "half of this is lost")], end="early", words=2, pause=0.05)
    if verb == "drop":
        return Reply([], end="drop")
    if verb == "status":
        words = rest.split()
        return Reply([], status=number(words[0] if words else ""), kind=words[1] if len(words) > 1 else "",
                     retry_after=words[2] if len(words) > 2 else "")
    if verb == "fail":
        return Reply([("say", "soon broken")], end="error", words=1, kind=first or "server_error")
    if verb == "maxtok":
        return Reply([("say", rest or "too long")], finish="length")
    if verb == "refuse":
        return Reply([("say", rest)], finish="refusal")
    raise BadScript(f"no such step: @@{verb}")


class Scripts:
    """Reads the script out of conversations. Remembers only what @@first has to count."""

    def __init__(self):
        self.tries = {}

    def answer(self, conversation, tools):
        """The reply to a conversation, which is a list of ("user", text) and ("output", text), with the number of its
        step (None where no script is in force)."""
        start = max((i for i, (role, text) in enumerate(conversation) if role == "user" and steps_of(text)), default=None)
        if start is None:
            return Reply([("say", UNSCRIPTED)]), None
        text = conversation[start][1]
        at = sum(role == "output" for role, _ in conversation[start:])
        steps = self.in_force(text, steps_of(text), at)
        if at >= len(steps):
            return Reply([("say", ENDED)]), at
        return reply_of(*steps[at], tools), at

    def in_force(self, text, steps, at):
        """The steps without those of @@first whose time is over."""
        kept = []
        for i, (verb, rest) in enumerate(steps):
            if verb != "first":
                kept.append((verb, rest))
                continue
            times, _, step = rest.partition(" ")
            tries = self.tries.setdefault((text, i), 0)
            if tries < number(times):
                if len(kept) == at:
                    self.tries[text, i] = tries + 1
                verb, _, rest = step.removeprefix("@@").partition(" ")
                return [*kept, (verb, rest)]
        return kept
