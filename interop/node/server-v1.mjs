// A stdio MCP server with one of everything, written with the TypeScript SDK 1 (low-level API, `initialize` era only).
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { answered, callTool, complete, getPrompt, readResource, surface } from './tools.mjs';

const server = new Server(
  { name: 'ts1-peer', version: '1' },
  {
    instructions: surface.instructions,
    capabilities: {
      completions: {},
      logging: {},
      prompts: {},
      resources: { subscribe: true },
      tools: { listChanged: true },
      experimental: { 'example.org/peer': { level: 3 } },
    },
  },
);

/** How a tool reaches the client that called it. */
function clientOf(extra) {
  const token = extra._meta?.progressToken;
  return {
    signal: extra.signal,
    async progress(params) {
      if (token === undefined) return;
      await extra.sendNotification({ method: 'notifications/progress', params: { progressToken: token, ...params } });
    },
    log: (params) => extra.sendNotification({ method: 'notifications/message', params }),
    async ask(kind) {
      if (kind === 'elicitation') return answered(await server.elicitInput(surface.elicitation));
      if (kind === 'sampling') return answered(await server.createMessage(surface.sampling));
      return answered(await server.listRoots());
    },
    async changed() {
      await server.sendResourceUpdated({ uri: 'peer://note' });
      await server.sendToolListChanged();
    },
  };
}

server.setRequestHandler(types.ListToolsRequestSchema, () => ({
  tools: surface.tools,
  _meta: { 'example.org/page': 1 },
}));
server.setRequestHandler(types.CallToolRequestSchema, ({ params }, extra) => {
  const result = callTool(params.name, params.arguments, clientOf(extra));
  if (!result) throw new types.McpError(types.ErrorCode.InvalidParams, `Unknown tool: ${params.name}`);
  return result;
});
server.setRequestHandler(types.ListResourcesRequestSchema, () => ({ resources: surface.resources }));
server.setRequestHandler(types.ListResourceTemplatesRequestSchema, () => ({
  resourceTemplates: surface.resourceTemplates,
}));
server.setRequestHandler(types.ReadResourceRequestSchema, ({ params }) => {
  const result = readResource(params.uri);
  if (!result) throw new types.McpError(-32002, `No such resource: ${params.uri}`, { uri: params.uri });
  return result;
});
server.setRequestHandler(types.SubscribeRequestSchema, () => ({}));
server.setRequestHandler(types.UnsubscribeRequestSchema, () => ({}));
server.setRequestHandler(types.SetLevelRequestSchema, () => ({}));
server.setRequestHandler(types.ListPromptsRequestSchema, () => ({ prompts: surface.prompts }));
server.setRequestHandler(types.GetPromptRequestSchema, ({ params }) => getPrompt(params.arguments));
server.setRequestHandler(types.CompleteRequestSchema, ({ params }) => complete(params.argument.value));

process.stdin.on('end', () => process.exit(0));
await server.connect(new StdioServerTransport());
