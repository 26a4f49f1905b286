// A stdio MCP server with one of everything, written with the TypeScript SDK 2 (low-level API, both eras). Questions to
// the client are input_required results; for a client of the old era the SDK turns them into requests.
import { inputRequired, ProtocolError, Server } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { answered, callTool, complete, getPrompt, readResource, surface } from './tools.mjs';

const STATE = 'round-1';

function question(kind) {
  if (kind === 'elicitation') return inputRequired.elicit(surface.elicitation);
  if (kind === 'sampling') return inputRequired.createMessage(surface.sampling);
  return inputRequired.listRoots();
}

/** How a tool reaches the client that called it. */
function clientOf(server, { mcpReq }) {
  const token = mcpReq._meta?.progressToken;
  return {
    signal: mcpReq.signal,
    async progress(params) {
      if (token === undefined) return;
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken: token, ...params } });
    },
    log: ({ level, data, logger }) => mcpReq.log(level, data, logger),
    async ask(kind) {
      const answer = mcpReq.inputResponses?.answer;
      if (!answer) return inputRequired({ inputRequests: { answer: question(kind) }, requestState: STATE });
      if (mcpReq.requestState() !== STATE) throw new Error('the request state came back changed');
      return answered(answer);
    },
    async changed() {
      await server.sendResourceUpdated({ uri: 'peer://note' });
      await server.sendToolListChanged();
    },
  };
}

function build() {
  const server = new Server(
    { name: 'ts2-peer', version: '1' },
    {
      instructions: surface.instructions,
      capabilities: {
        completions: {},
        logging: {},
        prompts: {},
        resources: { subscribe: true },
        tools: { listChanged: true },
      },
    },
  );
  server.setRequestHandler('tools/list', () => ({ tools: surface.tools, _meta: { 'example.org/page': 1 } }));
  server.setRequestHandler('tools/call', ({ params }, context) => {
    const result = callTool(params.name, params.arguments, clientOf(server, context));
    if (!result) throw new ProtocolError(-32602, `Unknown tool: ${params.name}`);
    return result;
  });
  server.setRequestHandler('resources/list', () => ({ resources: surface.resources }));
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: surface.resourceTemplates }));
  server.setRequestHandler('resources/read', ({ params }) => {
    const result = readResource(params.uri);
    if (!result) throw new ProtocolError(-32602, `No such resource: ${params.uri}`, { uri: params.uri });
    return result;
  });
  server.setRequestHandler('resources/subscribe', () => ({}));
  server.setRequestHandler('resources/unsubscribe', () => ({}));
  server.setRequestHandler('prompts/list', () => ({ prompts: surface.prompts }));
  server.setRequestHandler('prompts/get', ({ params }) => getPrompt(params.arguments));
  server.setRequestHandler('completion/complete', ({ params }) => complete(params.argument.value));
  return server;
}

serveStdio(build);
