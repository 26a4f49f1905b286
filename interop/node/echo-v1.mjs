// The echo server of the benchmark, written with the TypeScript SDK 1 (low-level API: the fastest it offers).
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const inputSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
const server = new Server({ name: 'ts1-echo', version: '1' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{ name: 'echo', inputSchema }] }));
server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
  content: [{ type: 'text', text: params.arguments.text }],
}));
process.stdin.on('end', () => process.exit(0));
await server.connect(new StdioServerTransport());
