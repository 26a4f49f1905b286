// The echo server of the benchmark, written with the TypeScript SDK 1 (low-level API: the fastest it offers):
//   node echo-v1.mjs                  over standard input and output
//   node echo-v1.mjs --http PORT      over HTTP, with sessions
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const inputSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };

function echo() {
  const server = new Server({ name: 'ts1-echo', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{ name: 'echo', inputSchema }] }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
    content: [{ type: 'text', text: params.arguments.text }],
  }));
  return server;
}

async function session(sessions) {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true, // cheaper for it than a stream
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  await echo().connect(transport);
  return transport;
}

if (process.argv[2] === '--http') {
  const sessions = new Map();
  const http = createServer(async (request, response) => {
    const transport = sessions.get(request.headers['mcp-session-id']) ?? (await session(sessions));
    await transport.handleRequest(request, response);
  });
  http.listen(Number(process.argv[3]), '127.0.0.1', () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
} else {
  process.stdin.on('end', () => process.exit(0));
  await echo().connect(new StdioServerTransport());
}
