// What the tests load into Pi, which has no permissions of its own: a server for its MCP client, and a question before bash.
export default function (pi) {
  const { TEST_MCP_URL: url, TEST_MCP_TOKEN: token } = process.env;
  if (url) {
    pi.registerMcpServer("dais", { url, headers: { Authorization: `Bearer ${token}` }, exposure: "direct", timeout: 60 });
  }
  pi.on("tool_call", async (event, context) => {
    if (event.toolName !== "bash") {
      return undefined;
    }
    const answer = await context.ui.select(`bash ${JSON.stringify(event.input)}`, ["allow_once", "deny"]);
    return answer === "allow_once" ? undefined : { block: true, reason: "The user declined this tool call." };
  });
}
