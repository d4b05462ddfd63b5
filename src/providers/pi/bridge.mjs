// The bridge of dais inside Pi: loaded with --extension, it does what Pi has no setting for.
//
// It asks the server for its settings with a dialog that only this program answers ("dais:settings:1"); so the credential of
// the MCP endpoint comes over stdin and stands in no argument, environment or file. Then it registers the tools of that
// endpoint, appends the instructions to the system prompt, and holds every call of a tool against the mode of the thread.
// Until the settings are there, and whenever something goes wrong in here, a call is blocked. A second dialog
// ("dais:ready:1") tells that it is ready and stays open: its answer is a change of mode, and it is opened anew.
//
// 1. No call of a tool runs that the gate has not let through: an exception blocks it.
// 2. Only names that were registered here pass as tools of dais: a server of the same name in the user's settings does not.
import { existsSync, readFileSync, realpathSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import path from "node:path";

const CONNECT_MS = 10_000;
const PROTOCOL_VERSION = "2025-06-18";
const READING = new Set(["read", "grep", "find", "ls"]);
const EDITING = new Set(["edit", "write"]);
const NO_MATCH = /[^A-Za-z0-9_]/g;

// ---- MCP over HTTP ----

function open(url, headers, body, signal) {
  return new Promise((resolve, reject) => {
    // Not fetch, which gives up after five minutes without an answer: delegate_task waits for longer.
    const request = (url.protocol === "https:" ? https : http).request(url, { method: "POST", headers, signal }, resolve);
    request.on("error", reject);
    request.end(body);
  });
}

async function text(response) {
  let all = "";
  response.setEncoding("utf8");
  for await (const part of response) all += part;
  return all;
}

// The message with our id, of a stream of events; what else the server tells is not for us.
async function fromStream(response, id) {
  let rest = "";
  response.setEncoding("utf8");
  for await (const part of response) {
    rest += part.replaceAll("\r", "");
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      const lines = rest.slice(0, end).split("\n").filter((line) => line.startsWith("data:"));
      rest = rest.slice(end + 2);
      if (lines.length === 0) continue;
      const data = lines.map((line) => line.slice(5).trimStart()).join("\n");
      const message = data === "" ? {} : JSON.parse(data);
      if (message.id === id && message.method === undefined) {
        response.destroy();
        return message;
      }
    }
  }
  throw new Error("the answer ended early");
}

class Endpoint {
  constructor(url, token) {
    this.url = new URL(url);
    this.token = token;
    this.lastId = 0;
  }

  async post(message, signal) {
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      authorization: `Bearer ${this.token}`,
    };
    if (this.version) headers["mcp-protocol-version"] = this.version;
    if (this.session) headers["mcp-session-id"] = this.session;
    const response = await open(this.url, headers, JSON.stringify({ jsonrpc: "2.0", ...message }), signal);
    if (response.statusCode >= 300) {
      response.resume();
      throw Object.assign(new Error(`the MCP endpoint answered ${response.statusCode}`), { status: response.statusCode });
    }
    return response;
  }

  async call(method, params, signal) {
    const id = ++this.lastId;
    const response = await this.post({ id, method, params }, signal);
    const isStream = (response.headers["content-type"] ?? "").startsWith("text/event-stream");
    const message = isStream ? await fromStream(response, id) : JSON.parse(await text(response));
    if (message.error) throw new Error(message.error.message);
    return { result: message.result, session: response.headers["mcp-session-id"] };
  }

  async connect(signal) {
    this.version = this.session = undefined;
    const { result, session } = await this.call(
      "initialize",
      { protocolVersion: PROTOCOL_VERSION, capabilities: {}, clientInfo: { name: "dais-pi", version: "1" } },
      signal,
    );
    this.version = result.protocolVersion;
    this.session = session;
    (await this.post({ method: "notifications/initialized" }, signal)).resume();
  }

  async tools(signal) {
    const all = [];
    let cursor;
    do {
      const { result } = await this.call("tools/list", cursor === undefined ? {} : { cursor }, signal);
      all.push(...result.tools);
      cursor = result.nextCursor;
    } while (cursor !== undefined);
    return all;
  }

  async callTool(name, args, signal) {
    try {
      return (await this.call("tools/call", { name, arguments: args }, signal)).result;
    } catch (error) {
      if (error.status !== 404 || this.session === undefined) throw error;
      await this.connect(signal); // the session is gone, the call was not looked at
      return (await this.call("tools/call", { name, arguments: args }, signal)).result;
    }
  }
}

// ---- the gate ----

// Where `file` really is, as far as it exists.
function realPath(file) {
  const rest = [];
  for (let at = file; ; at = path.dirname(at)) {
    try {
      return path.join(realpathSync(at), ...rest);
    } catch (error) {
      if (error.code !== "ENOENT" || at === path.dirname(at)) throw error;
      rest.unshift(path.basename(at));
    }
  }
}

// Pi expands ~, @ and blanks of other alphabets in paths: such a one is not judged here, a person is asked.
function isInside(folder, file) {
  if (typeof file !== "string" || /^[~@]|^file:|[^\S ]/.test(file)) return false;
  const relative = path.relative(realpathSync(folder), realPath(path.resolve(folder, file)));
  return relative !== "" && relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
}

// "run", "ask", or why it is blocked.
function judge(settings, registered, tool, input) {
  if (settings === undefined) return "dais has not told the mode of this thread yet.";
  if (settings.gate === "full" || READING.has(tool) || registered.has(tool)) return "run";
  if (settings.gate === "read") return "This session is read-only.";
  if (settings.gate === "plan") return "This is a planning session: nothing is changed and no command runs.";
  if (settings.gate === "edits" && EDITING.has(tool) && isInside(settings.workspace, input.path)) return "run";
  return "ask";
}

// What "for the session" allows: all edits inside the folder, or this very call.
function allowanceOf(settings, tool, input) {
  if (EDITING.has(tool) && isInside(settings.workspace, input.path)) return "edits";
  return JSON.stringify([tool, input]);
}

// ---- results and questions ----

function asPi(content) {
  return content.map((block) =>
    block.type === "text" ? { type: "text", text: block.text }
    : block.type === "image" ? { type: "image", data: block.data, mimeType: block.mimeType }
    : { type: "text", text: JSON.stringify(block) });
}

const QUESTION = {
  name: "ask_user",
  label: "Ask the user",
  description: "Ask the user one question, when the work cannot go on without their decision. Waits for the answer.",
  parameters: {
    type: "object",
    properties: {
      question: { type: "string" },
      header: { type: "string", description: "A word or two that name the subject" },
      options: { type: "array", items: { type: "string" }, description: "Choices; the user may answer in other words" },
      multi: { type: "boolean", description: "Several choices may be taken" },
    },
    required: ["question"],
  },
  async execute(_id, params, signal, _onUpdate, context) {
    const answer = await context.ui.input(`dais:ask:1:${JSON.stringify(params)}`, "", { signal });
    return { content: [{ type: "text", text: answer ?? "The user did not answer." }], details: {} };
  },
};

// ---- the extension ----

// Of the package that Pi's program lies in: it does not tell its version over RPC.
function versionOfPi() {
  try {
    for (let at = path.dirname(realpathSync(process.argv[1])); at !== path.dirname(at); at = path.dirname(at)) {
      const file = path.join(at, "package.json");
      if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8")).version;
    }
  } catch {
    // It is only shown.
  }
  return undefined;
}

export default function dais(pi) {
  const version = versionOfPi();
  const registered = new Set([QUESTION.name]);
  const allowed = new Set();
  let settings, endpoint, isConnected = false;

  function register(tool) {
    const name = `mcp__dais__${tool.name.replace(NO_MATCH, "_")}`;
    registered.add(name);
    pi.registerTool({
      name,
      label: tool.title ?? tool.name,
      description: tool.description ?? tool.name,
      parameters: tool.inputSchema,
      async execute(_id, params, signal) {
        const result = await endpoint.callTool(tool.name, params, signal);
        const content = asPi(result.content ?? []);
        if (result.isError) throw new Error(content.map((block) => block.text ?? "").join("\n"));
        return { content, details: result.structuredContent ?? {} };
      },
    });
  }

  // Tried twice; what is wrong is told, and Pi goes on without our tools.
  async function connect() {
    let problem;
    for (let attempt = 0; attempt < 2 && settings.url && !isConnected; attempt++) {
      try {
        const signal = AbortSignal.timeout(CONNECT_MS);
        endpoint = new Endpoint(settings.url, settings.token);
        await endpoint.connect(signal);
        for (const tool of await endpoint.tools(signal)) register(tool);
        isConnected = true;
      } catch (error) {
        problem = error.message;
      }
    }
    return isConnected ? undefined : problem;
  }

  async function serve(context) {
    const told = await context.ui.input("dais:settings:1", "");
    if (told === undefined) return;
    settings = JSON.parse(told);
    let state = { version, problem: await connect(), tools: registered.size - 1 };
    for (;;) {
      const change = await context.ui.input(`dais:ready:1:${JSON.stringify(state)}`, "");
      if (change === undefined) return;
      settings = { ...settings, ...JSON.parse(change) };
      state = {};
    }
  }

  pi.registerTool(QUESTION);

  // Not waited for: Pi reads no answer before all its extensions have begun.
  pi.on("session_start", (_event, context) => {
    serve(context).catch((error) => {
      settings = undefined; // (1)
      context.ui.notify(`dais:failed:1:${error.message}`, "error");
    });
  });

  pi.on("before_agent_start", (event) =>
    settings?.instructions ? { systemPrompt: `${event.systemPrompt}\n\n${settings.instructions}` } : undefined);

  pi.on("tool_call", async (event, context) => {
    const { toolCallId, toolName: tool, input } = event;
    const block = (reason) => {
      context.ui.notify(`dais:blocked:1:${toolCallId}`, "info");
      return { block: true, reason };
    };
    try {
      const verdict = judge(settings, registered, tool, input);
      if (verdict === "run") return undefined;
      if (verdict !== "ask") return block(verdict);
      const allowance = allowanceOf(settings, tool, input);
      if (allowed.has(allowance)) return undefined;
      const choices = ["allow_once", "allow_session", "deny", "cancel"];
      const answer = await context.ui.select(`dais:approve:1:${JSON.stringify({ toolCallId, tool, input })}`, choices);
      if (answer === "allow_session") allowed.add(allowance);
      if (answer === "allow_once" || answer === "allow_session") return undefined;
      if (answer === "cancel") context.abort();
      return block(answer === "deny" ? "The user declined this tool call." : "The user stopped this.");
    } catch (error) {
      return block(`The call could not be checked: ${error.message}`);
    }
  });
}
