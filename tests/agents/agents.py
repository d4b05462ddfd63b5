"""Each agent's program, set up to ask the tests' model server and nobody else."""
import dataclasses
import json
import pathlib
import subprocess
import time
import uuid

import mcp_server
import programs
import sessions

HERE = pathlib.Path(__file__).resolve().parent
MODEL = "fake-1"


@dataclasses.dataclass
class Place:
    """Where one run of a program lives, and whom it talks to."""
    home: pathlib.Path
    transcript: pathlib.Path
    model: object  # ModelServer
    mcp: object = None  # McpServer, or None
    token: str = mcp_server.TOKEN  # shown to it
    resume: str = ""  # the program's own name of the conversation to go on with

    @property
    def repo(self):
        return self.home / "repo"

    def make(self):
        for directory in (self.home, self.repo, self.home / "tmp"):
            directory.mkdir(parents=True)
        # A work tree of its own: programs look above for one, and would find that of dais.
        subprocess.run(["git", "init", "-q", self.repo], check=True)

    def write(self, path, text):
        target = self.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


class Agent:
    """A subclass says how the program is started and configured, and what it calls its tools."""
    session = sessions.Acp
    mode = None  # of ACP, set after session/new
    arguments = ()
    steering = None  # of ACP: text → (method, name of the argument, its value)
    only_identified_text = False  # warnings come as text, but without the id of a message
    shell_tool, shell_argument = "bash", "command"
    shell_more = {"description": "A command of the tests"}
    write_tool, write_path = "write", "path"
    asks_before_writing = True
    mcp_tool = "mcp__dais__{}"
    # What it does with a failure of the model server: "fails"; "retries" for longer than a test waits; "completes", for it got
    # a whole answer in the end; or "hides": it says that all is well, and only signs beside that tell otherwise.
    on_400 = on_401 = on_429 = on_500 = "fails"
    on_cut = on_early = "fails"  # the connection ends in the middle of a stream; the stream ends well, but too early
    cut_while_it_retries = ("interrupted",)  # what it may call the end of a turn that was interrupted while it tried again
    # As an agent of dais: the driver of its provider instance, the model that is asked for, if one must be, and what dais
    # calls a failure of the model's server.
    driver = "acp"
    product_model = None
    product_env = {}
    product_on_cut = None  # where dais sees more in it than the program says
    runs_what_was_allowed = True
    codes = {"400": ("invalid_request",), "401": ("auth_invalid", "auth_required"), "429": ("rate_limited",), "cut": ("connection_lost",)}

    def __init__(self):
        self.program = programs.table()[self.name]

    def command(self, place):
        return [self.program.path, *self.arguments]

    def product_command(self, place):
        """The command of a provider instance: the driver of a program adds its arguments itself, that of any does not."""
        return self.command(place) if self.driver == "acp" else [self.program.path]

    def env(self, place):
        return {"HOME": str(place.home), "PATH": f"{programs.NODE}:/usr/bin:/bin", "TMPDIR": str(place.home / "tmp"), "LANG": "C.UTF-8",
                **self.own_env(place)}

    def own_env(self, place):
        return {}

    def configure(self, place):
        """Write the files that the program reads."""

    def before_resume(self):
        """Wait until the program can go on with a conversation that it has just had."""

    def shell(self, command):
        """The step by which the model runs a command."""
        return f"@@call {self.shell_tool} {json.dumps({self.shell_argument: command, **self.shell_more})}"

    def write(self, path, text):
        """The step by which the model writes a new file."""
        return f"@@call {self.write_tool} {json.dumps({self.write_path: str(path), 'content': text})}"

    def mcp_steps(self, tool, arguments):
        return [f"@@call {self.mcp_tool.format(tool)} {json.dumps(arguments)}"]


class CodexHome:
    """The configuration that Codex and its wrapper share."""
    shell_tool, shell_argument, shell_more = "exec_command", "cmd", {}

    def write(self, path, text):
        """It takes a patch out of a shell command. Models that it does not know have no tool of their own for that."""
        patch = f"*** Begin Patch\n*** Add File: {path}\n+{text.strip()}\n*** End Patch"
        return self.shell(f"apply_patch <<'EOF'\n{patch}\nEOF")

    def own_env(self, place):
        return {"CODEX_HOME": str(place.home / ".codex"), "FAKE_KEY": place.model.key}

    def configure(self, place):
        place.write(".codex/config.toml", f"""model = "{MODEL}"
model_provider = "fake"
check_for_update_on_startup = false
web_search = "disabled"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
[analytics]
enabled = false
[feedback]
enabled = false
[features]
plugins = false
[model_providers.fake]
name = "fake"
base_url = "{place.model.url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 1
stream_max_retries = 1
stream_idle_timeout_ms = 30000
supports_websockets = false
""")


class Codex(CodexHome, Agent):
    name = "codex"
    driver = "codex"
    session = sessions.Codex
    arguments = ("app-server",)


class CodexAcp(CodexHome, Agent):
    name = "codex-acp"
    runs_what_was_allowed = False  # its mode that asks about everything has a read-only sandbox, for what was allowed, too

    @staticmethod
    def steering(text):
        return "_session/steering", "prompt", [{"type": "text", "text": text}]

    asks_before_writing = False
    mode = "workspace-write"  # in its default mode a second model decides
    only_identified_text = True
    on_400 = on_429 = on_500 = on_cut = on_early = "hides"

    def own_env(self, place):
        return {**super().own_env(place), "NO_BROWSER": "1"}


class ClaudeHome:
    shell_tool = "Bash"
    write_tool, write_path = "Write", "file_path"

    def own_env(self, place):
        return {"ANTHROPIC_BASE_URL": place.model.url, "ANTHROPIC_API_KEY": place.model.key, "CLAUDE_CONFIG_DIR": str(place.home / "claude"),
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
                "DISABLE_ERROR_REPORTING": "1", "CLAUDE_CODE_MAX_RETRIES": "1", "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"}


class Claude(ClaudeHome, Agent):
    name = "claude"
    driver = "claudeAgent"
    product_env = {"IS_SANDBOX": "1"}  # full access as root, which the tests may be
    session = sessions.Claude
    on_cut = on_early = "completes"  # it asks again, without a stream

    def command(self, place):
        servers = [] if place.mcp is None else ["--await-initialize", "--allowedTools=mcp__dais__*"]
        return [self.program.path, "-p", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json",
                "--permission-prompt-tool=stdio", "--include-partial-messages", "--setting-sources=", "--strict-mcp-config",
                f"--resume={place.resume}" if place.resume else f"--session-id={uuid.uuid4()}", *servers]


class ClaudeAcp(ClaudeHome, Agent):
    name = "claude-acp"
    product_on_cut = "fails"  # the rest of the answer comes as another message, without usage: half a result is none
    on_cut = on_early = "completes"


class OpenCode(Agent):
    name = "opencode"
    write_path = "filePath"
    mcp_tool = "dais_{}"
    on_429 = on_500 = on_cut = on_early = "retries"
    cut_while_it_retries = ("interrupted", "completed")  # the latter between two tries

    def command(self, place):
        return [self.program.path, "acp", "--cwd", place.repo]

    def own_env(self, place):
        config = {
            "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "Fake",
                                  "options": {"baseURL": f"{place.model.url}/v1", "apiKey": place.model.key},
                                  "models": {MODEL: {"name": "Fake 1", "limit": {"context": 100000, "output": 4096}}}}},
            "enabled_providers": ["fake"], "model": f"fake/{MODEL}", "small_model": f"fake/{MODEL}", "autoupdate": False, "share": "disabled",
            # The last rule that matches wins.
            "permission": {"*": "ask", "read": "allow", "dais_*": "allow"}}
        return {"OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"}


class Pi(Agent):
    name = "pi"
    driver = None  # dais has none for it
    session = sessions.Pi
    asks_before_writing = False
    shell_more = {}

    def command(self, place):
        return [self.program.path, "--mode", "rpc", "--offline", "--no-approve", "--provider", "fake", "--model", MODEL,
                "--extension", HERE / "pi_gate.mjs", *(["--session", place.resume] if place.resume else [])]

    def own_env(self, place):
        servers = {} if place.mcp is None else {"TEST_MCP_URL": place.mcp.endpoint, "TEST_MCP_TOKEN": place.token}
        return {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1", **servers}

    def configure(self, place):
        model = {"id": MODEL, "name": "Fake 1", "reasoning": True, "contextWindow": 100000, "maxTokens": 4096,
                 "cost": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0}}
        place.write(".pi/agent/models.json", json.dumps({"providers": {"fake": {
            "baseUrl": f"{place.model.url}/v1", "api": "openai-completions", "apiKey": place.model.key,
            "compat": {"supportsDeveloperRole": False}, "models": [model]}}}))


class Gemini(Agent):
    name = "gemini"
    driver = "gemini"
    product_model = "gemini-2.5-pro"
    # With a model named, no second model is asked which one to take.
    arguments = ("--acp", "--skip-trust", "-m", "gemini-2.5-pro")
    shell_tool = "run_shell_command"
    write_tool, write_path = "write_file", "file_path"
    mcp_tool = "mcp_dais_{}"
    on_429 = on_500 = "retries"
    on_early = "hides"

    def own_env(self, place):
        return {"GEMINI_API_KEY": place.model.key, "GOOGLE_GEMINI_BASE_URL": place.model.url, "GEMINI_CLI_NO_RELAUNCH": "true"}

    def before_resume(self):
        """Its files are named after the minute: a load in the same one begins that file anew, and all in it is lost."""
        time.sleep(61 - time.time() % 60)


class Grok(Agent):
    name = "grok"
    driver = "grok"

    @staticmethod
    def steering(text):
        return "_x.ai/interject", "text", text

    arguments = ("agent", "--no-leader", "stdio")
    shell_tool = "run_terminal_command"
    write_path = "file_path"
    on_early = "hides"

    def configure(self, place):
        place.write(".grok/config.toml", f"""[cli]
auto_update = false
[models]
default = "fake"
[model.fake]
model = "{MODEL}"
base_url = "{place.model.url}/v1"
name = "Fake One"
api_key = "{place.model.key}"
api_backend = "chat_completions"
context_window = 100000
max_retries = 1
""")

    def mcp_steps(self, tool, arguments):
        """Its model does not get the tools themselves."""
        return ['@@call search_tool {"query": "%s"}' % tool,
                f'@@call use_tool {json.dumps({"tool_name": f"dais__{tool}", "tool_input": arguments})}']


AGENTS = [Codex, Claude, OpenCode, Pi, Gemini, Grok, ClaudeAcp, CodexAcp]
