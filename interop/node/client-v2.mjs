// An MCP client written with the TypeScript SDK 2 that uses everything a peer server offers and prints a report:
//   node client-v2.mjs [--era legacy|modern] [--only echo] -- COMMAND ARGUMENTS…
//   node client-v2.mjs [--era legacy|modern] [--only echo] -- http://ADDRESS/mcp | http://ADDRESS/sse
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { run } from './drive.mjs';

const TRANSPORTS = {
  Stdio: StdioClientTransport,
  StreamableHttp: StreamableHTTPClientTransport,
  Sse: SSEClientTransport,
};

await run(TRANSPORTS, async (era, transport, register) => {
  const client = new Client(
    { name: 'ts2-client', version: '1' },
    {
      capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
      versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' },
    },
  );
  const peer = {
    client,
    era,
    version: () => client.getNegotiatedProtocolVersion(),
    end: () => transport.terminateSession?.(),
    call: (params, options) => client.callTool(params, options),
    onRequest: (method, handler) => client.setRequestHandler(method, handler),
    onNotification: (method, handler) => client.setNotificationHandler(method, handler),
  };
  register(peer);
  await client.connect(transport);
  return peer;
});
