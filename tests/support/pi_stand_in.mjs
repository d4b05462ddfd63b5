// What the bridge of dais sees of Pi, without Pi: `node pi_stand_in.mjs BRIDGE`. Lines of JSON.
//
//   out  {"dialog":ID,"title":…}          an answer is awaited
//        {"notify":TEXT}
//        {"result":…} | {"error":TEXT} | {"blocked":REASON}    of a call
//        {"prompt":TEXT}                  the system prompt, after all of the extension
//   in   {"answer":ID,"value":…}          without a value: cancelled
//        {"call":NAME,"input":{…}}        the model calls a tool
//        {"agent":true}                   a run begins
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const handlers = {};
const tools = new Map();
const waiting = new Map();
let lastDialog = 0, lastCall = 0;

const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const dialog = (title) =>
  new Promise((resolve) => {
    waiting.set(++lastDialog, resolve);
    say({ dialog: lastDialog, title });
  });
const context = {
  ui: { input: dialog, select: dialog, notify: (text) => say({ notify: text }) },
  abort: () => say({ aborted: true }),
};
const pi = {
  on: (event, handler) => {
    handlers[event] = handler;
  },
  registerTool: (tool) => tools.set(tool.name, tool),
};

async function call(name, input) {
  const verdict = await handlers.tool_call({ toolCallId: `call_${++lastCall}`, toolName: name, input }, context);
  if (verdict?.block) return say({ blocked: verdict.reason });
  try {
    const tool = tools.get(name);
    return say({ result: tool ? await tool.execute("c", input, undefined, undefined, context) : "ran" });
  } catch (error) {
    return say({ error: error.message });
  }
}

const bridge = await import(pathToFileURL(path.resolve(process.argv[2])));
bridge.default(pi);
handlers.session_start({ reason: "startup" }, context);
for await (const line of readline.createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  if (order.answer) waiting.get(order.answer)(order.value);
  else if (order.call) void call(order.call, order.input ?? {});
  else if (order.agent) say({ prompt: (await handlers.before_agent_start({ systemPrompt: "You are Pi." }))?.systemPrompt ?? "You are Pi." });
}
