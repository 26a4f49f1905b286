// The echo server of the benchmark, written with the TypeScript SDK 2 (low-level API: the fastest it offers):
//   node echo-v2.mjs                  over standard input and output
//   node echo-v2.mjs --http PORT      over HTTP
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, Server } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const inputSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };

function echo() {
  const server = new Server({ name: 'ts2-echo', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', () => ({ tools: [{ name: 'echo', inputSchema }] }));
  server.setRequestHandler('tools/call', ({ params }) => ({
    content: [{ type: 'text', text: params.arguments.text }],
  }));
  return server;
}

if (process.argv[2] === '--http') {
  const http = createServer(toNodeHandler(createMcpHandler(echo)));
  http.listen(Number(process.argv[3]), '127.0.0.1', () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
} else {
  serveStdio(echo);
}
