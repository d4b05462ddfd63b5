"""An MCP server on stdin and stdout whose one tool has the schema given as argument: is the inspector's lint awake?"""
import json
import sys

TOOL = {"name": "bad", "description": "Has a schema with a fault.", "inputSchema": json.loads(sys.argv[1])}
ANSWERS = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                   "serverInfo": {"name": "bad", "version": "1"}},
    "tools/list": {"tools": [TOOL]},
}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] in ANSWERS:
            answer["result"] = ANSWERS[message["method"]]
        else:
            answer["error"] = {"code": -32601, "message": "no such method"}
        print(json.dumps(answer), flush=True)
