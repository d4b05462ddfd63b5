"""What is expected of an agent, whichever it is. A check gets a Stage, which opens sessions, and asserts.

A check that does not apply to an agent raises Skip with the reason.
"""
import contextlib
import shutil

import agents
import programs
from child import Ended
from mcp_server import McpServer
from model_server import ModelServer

TRANSCRIPTS = programs.CACHE / "transcripts"
# Every program asks before this one; some run harmless commands unasked.
ASKED_ABOUT = "rm -f old.txt; echo it ran > {}"
LAST_WORDS = "these words are the last"
SPOKEN = "hello from the model of the tests"


class Skip(Exception):
    pass


class Stage:
    """The model, the MCP server and the home of one check of one agent.

    Beside the transcript the model's requests are kept in CHECK.model, those of the MCP server in CHECK.mcp."""

    def __init__(self, agent, check):
        self.agent = agent
        name = check.__name__
        # Not below /tmp: Codex does less there.
        home = programs.CACHE / "homes" / f"{agent.name}-{name}"
        shutil.rmtree(home, ignore_errors=True)
        transcript = TRANSCRIPTS / agent.name / f"{name}.jsonl"
        self.model = ModelServer(log=transcript.with_suffix(".model"))
        self.mcp = McpServer(log=transcript.with_suffix(".mcp"))
        self.place = agents.Place(home, transcript, self.model)
        for old in transcript.parent.glob(f"{name}.*"):
            old.unlink()

    def __enter__(self):
        self.place.make()
        self.model.start()
        self.mcp.start()
        return self

    def __exit__(self, kind, *_):
        self.model.stop()
        self.mcp.stop()
        if kind in (None, Skip):
            shutil.rmtree(self.place.home)

    @contextlib.contextmanager
    def session(self, allows=True, with_mcp=False, resume=""):
        """A session that is ended at the end of the block, in good order when all went well."""
        self.place.mcp = self.mcp if with_mcp else None
        if resume:
            self.place.resume = resume
            self.place.transcript = self.place.transcript.with_suffix(".2.jsonl")
        self.agent.configure(self.place)
        session = self.agent.session(self.agent, self.place, allows)
        try:
            yield session.start()
        finally:
            if hasattr(session, "child"):
                session.child.end()
            assert not self.model.mistakes + self.mcp.mistakes, self.model.mistakes + self.mcp.mistakes

    def answered(self, step):
        """The calls of the model that this step answered."""
        return [entry for entry in self.model.requests if entry.get("step") == step]

    def repo_file(self, name):
        path = self.place.repo / name
        return path.read_text() if path.exists() else None


def a_turn_streams_text(stage):
    with stage.session() as session:
        turn = session.turn(f"@@slow 20 {SPOKEN}")
        assert (turn.outcome, turn.text) == ("completed", SPOKEN), turn
        assert len(turn.pieces) > 1, "the text came in one piece"
        assert turn.usage, "no usage was told"


def a_second_turn_knows_the_first(stage):
    with stage.session() as session:
        session.turn("@@say the word is harbour")
        turn = session.turn("@@say understood")
        assert turn.outcome == "completed" and turn.text.endswith("understood"), turn
    asked = str(stage.answered(0)[-1]["body"])
    assert "the word is harbour" in asked, asked[-2000:]


def thoughts_are_told_apart_from_text(stage):
    with stage.session() as session:
        turn = session.turn("@@think about boats")
        assert (turn.outcome, turn.text) == ("completed", "thought."), turn
        assert "about boats" in "".join(turn.thoughts), turn


def a_granted_command_runs(stage):
    with stage.session() as session:
        turn = session.turn("\n".join([stage.agent.shell(ASKED_ABOUT.format("granted.txt")), "@@say done"]))
        assert turn.outcome == "completed" and turn.text.endswith("done"), turn
        assert turn.asked, "the program did not ask"
        assert stage.repo_file("granted.txt") == "it ran\n", turn
        assert set(turn.tools.values()) == {"completed"}, turn


def a_denied_command_does_not_run(stage):
    with stage.session(allows=False) as session:
        turn = session.turn("\n".join([stage.agent.shell(ASKED_ABOUT.format("denied.txt")), "@@say done"]))
        assert turn.outcome in ("completed", "interrupted"), turn
        assert turn.asked, "the program did not ask"
        assert stage.repo_file("denied.txt") is None, turn


def a_file_is_written(stage):
    with stage.session() as session:
        turn = session.turn("\n".join([stage.agent.write(stage.place.repo / "new.txt", "a line\n"), "@@say done"]))
        assert turn.outcome == "completed" and turn.text.endswith("done"), turn
        assert bool(turn.asked) == stage.agent.asks_before_writing, turn
        assert stage.repo_file("new.txt") == "a line\n", turn


def a_tool_of_the_mcp_server_is_called(stage):
    mcp = stage.mcp
    with stage.session(with_mcp=True) as session:
        turn = session.turn("\n".join([*stage.agent.mcp_steps("echo", {"text": "over the harbour"}), "@@say done"]))
        assert turn.outcome == "completed" and turn.text.endswith("done"), turn
        assert mcp.calls("echo") == [{"text": "over the harbour"}], mcp.requests
        assert not [entry for entry in mcp.requests if entry["status"] == 401], mcp.requests
    shown = [output for entry in stage.model.requests for output in entry.get("outputs", ())]
    assert any("over the harbour" in output for output in shown), shown


def a_wrong_token_reaches_no_tool(stage):
    stage.place.token = "wrong"
    try:
        with stage.session(with_mcp=True) as session:
            turn = session.turn("\n".join([*stage.agent.mcp_steps("echo", {"text": "never"}), "@@say done"]))
            assert turn.outcome in ("completed", "interrupted"), turn
    except Ended as refusal:
        assert "dais" in str(refusal), refusal  # it may also refuse to start without the server
    asked = stage.mcp.requests
    assert asked and all(entry["status"] == 401 for entry in asked), asked


def a_later_process_goes_on_with_the_conversation(stage):
    with stage.session() as session:
        session.turn("@@say the word is harbour")
        native = session.native
    stage.agent.before_resume()
    with stage.session(resume=native) as session:
        turn = session.turn("@@say understood")
        assert turn.outcome == "completed" and turn.text.endswith("understood"), turn
    asked = str(stage.answered(0)[-1]["body"])
    assert "the word is harbour" in asked, asked[-2000:]


def an_interrupted_answer_ends_the_turn(stage):
    with stage.session() as session:
        turn = session.turn("@@hang first word", interrupt_when=lambda turn: turn.pieces)
        assert turn.outcome == "interrupted", turn
        assert stage.model.wait_for(lambda entry: entry.get("cut")), "the program kept its call to the model open"
        turn = session.turn("@@say still here")
        assert turn.outcome == "completed" and turn.text.endswith("still here"), turn


def an_interrupted_command_ends_the_turn(stage):
    command = "touch started.txt; until false; do sleep 0.2; done"
    with stage.session() as session:
        turn = session.turn("\n".join([stage.agent.shell(command), "@@say done"]),
                            interrupt_when=lambda _: stage.repo_file("started.txt") is not None)
        assert turn.outcome == "interrupted", turn


def an_open_question_goes_with_the_turn(stage):
    with stage.session(allows=None) as session:
        turn = session.turn("\n".join([stage.agent.shell(ASKED_ABOUT.format("never.txt")), "@@say done"]), interrupt_when=lambda turn: turn.asked)
        assert turn.outcome == "interrupted", turn
        assert stage.repo_file("never.txt") is None, turn
        session.allows = True
        turn = session.turn("@@say still here")
        assert turn.outcome == "completed" and turn.text.endswith("still here"), turn


def a_word_in_mid_turn_is_heard_in_it(stage):
    with stage.session() as session:
        command = "touch started.txt; until [ -e go.txt ]; do sleep 0.1; done"

        def steer():
            if not session.steer("@@say I heard it"):
                raise Skip("it has no way for that")
            (stage.place.repo / "go.txt").touch()

        turn = session.turn("\n".join([stage.agent.shell(command), "@@say I heard nothing"]),
                            when=lambda _: stage.repo_file("started.txt") is not None, then=steer)
        assert turn.outcome == "completed" and turn.text.endswith("I heard it"), turn


def failing(stage, step, does):
    """A turn whose model fails, and what the agent does about it: see Agent.on_400."""
    with stage.session() as session:
        if does == "retries":
            turn = session.turn(step, interrupt_when=lambda _: len(stage.answered(0)) > 1)
            assert turn.outcome in stage.agent.cut_while_it_retries, turn
            return
        turn = session.turn(step)
        assert turn.outcome == {"fails": "failed", "completes": "completed", "hides": "completed"}[does], turn
        assert bool(turn.error) == (does == "fails"), turn
        assert turn.signs or does != "hides", turn
        assert turn.text.endswith(LAST_WORDS) or does != "completes", turn


def a_bad_request_fails_the_turn(stage):
    failing(stage, "@@status 400", stage.agent.on_400)


def a_rate_limit_is_told(stage):
    failing(stage, "@@status 429", stage.agent.on_429)


def an_overloaded_model_is_told(stage):
    failing(stage, "@@status 500", stage.agent.on_500)


def a_cut_stream_is_survived(stage):
    failing(stage, f"@@half {LAST_WORDS}", stage.agent.on_cut)


def an_answer_that_stops_early_is_survived(stage):
    failing(stage, f"@@early {LAST_WORDS}", stage.agent.on_early)


def a_refused_key_is_told(stage):
    stage.model.accepts = "another key"
    failing(stage, "@@say never", stage.agent.on_401)


CHECKS = [a_turn_streams_text, a_second_turn_knows_the_first, thoughts_are_told_apart_from_text, a_granted_command_runs,
          a_denied_command_does_not_run, a_file_is_written, a_tool_of_the_mcp_server_is_called, a_wrong_token_reaches_no_tool,
          a_later_process_goes_on_with_the_conversation, an_interrupted_answer_ends_the_turn,
          an_interrupted_command_ends_the_turn, an_open_question_goes_with_the_turn, a_word_in_mid_turn_is_heard_in_it,
          a_bad_request_fails_the_turn, a_refused_key_is_told, a_rate_limit_is_told, an_overloaded_model_is_told,
          a_cut_stream_is_survived, an_answer_that_stops_early_is_survived]
