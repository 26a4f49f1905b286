// An MCP client written with the TypeScript SDK 1 that uses everything a peer server offers and prints a report:
//   node client-v1.mjs [--only echo] -- COMMAND ARGUMENTS…
//   node client-v1.mjs [--only echo] -- http://ADDRESS/mcp | http://ADDRESS/sse
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { run } from './drive.mjs';

const SCHEMAS = {
  'elicitation/create': types.ElicitRequestSchema,
  'sampling/createMessage': types.CreateMessageRequestSchema,
  'roots/list': types.ListRootsRequestSchema,
  'notifications/progress': types.ProgressNotificationSchema,
  'notifications/message': types.LoggingMessageNotificationSchema,
  'notifications/resources/updated': types.ResourceUpdatedNotificationSchema,
  'notifications/tools/list_changed': types.ToolListChangedNotificationSchema,
};

const TRANSPORTS = {
  Stdio: StdioClientTransport,
  StreamableHttp: StreamableHTTPClientTransport,
  Sse: SSEClientTransport,
};

await run(TRANSPORTS, async (era, transport, register) => {
  if (era !== 'legacy') throw new Error('this SDK speaks only the initialize era');
  const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
  const client = new Client({ name: 'ts1-client', version: '1' }, { capabilities });
  let version;
  // The SDK tells its transport the negotiated version, and nobody else.
  const tell = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (negotiated) => {
    version = negotiated;
    tell?.(negotiated);
  };
  const peer = {
    client,
    era,
    version: () => version,
    end: () => transport.terminateSession?.(),
    call: (params, options) => client.callTool(params, undefined, options),
    onRequest: (method, handler) => client.setRequestHandler(SCHEMAS[method], handler),
    onNotification: (method, handler) => client.setNotificationHandler(SCHEMAS[method], handler),
  };
  register(peer);
  await client.connect(transport);
  return peer;
});
