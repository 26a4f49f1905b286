// The echo server of the benchmark, written with the TypeScript SDK 2 (low-level API: the fastest it offers).
import { Server } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const inputSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };

serveStdio(() => {
  const server = new Server({ name: 'ts2-echo', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', () => ({ tools: [{ name: 'echo', inputSchema }] }));
  server.setRequestHandler('tools/call', ({ params }) => ({
    content: [{ type: 'text', text: params.arguments.text }],
  }));
  return server;
});
