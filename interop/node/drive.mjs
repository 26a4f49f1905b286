// Uses everything a peer server offers and reports what the client saw: the part that the clients of both TypeScript
// SDKs share. The report has sorted keys and no names, ids or times of this run, so that the report of a direct session
// and the report of a session through a gateway must be equal byte by byte.
import { parseArgs } from 'node:util';
import { surface } from './tools.mjs';

const RUN_LIMIT = 60_000; // for the whole session; a hang must end as a failure
const EVENT_LIMIT = 10_000; // for a notification that was promised
const CONCURRENT = 50;
// What differs between any two sessions and says nothing about a loss.
const PRIVATE_META = new Set(['io.modelcontextprotocol/serverInfo', 'io.modelcontextprotocol/subscriptionId']);

/** The value with sorted keys and without names and ids of this run. */
function plain(value) {
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  const result = {};
  for (const key of Object.keys(value).sort()) {
    if (PRIVATE_META.has(key)) continue;
    const member = plain(value[key]);
    if (key === '_meta') {
      delete member.progressToken; // chosen by the server, if any: ours are in the notifications
      if (Object.keys(member).length === 0) continue;
    }
    result[key] = member;
  }
  return result;
}

/** The result of a call, or the error the server answered with. */
async function outcome(call) {
  try {
    return plain(await call);
  } catch (error) {
    if (error.code === undefined) throw error;
    return { error: plain({ code: error.code, message: error.message, data: error.data }) };
  }
}

/** Notifications and requests that came from the server, in order per kind. */
class Events {
  seen = {};
  waiting = [];

  add(kind, value) {
    (this.seen[kind] ??= []).push(plain(value ?? {}));
    this.waiting = this.waiting.filter((check) => !check());
  }

  async wait(kind, count) {
    const enough = () => (this.seen[kind]?.length ?? 0) >= count;
    if (enough()) return;
    await new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.add('missing', `${count} × ${kind}`);
        resolve();
      }, EVENT_LIMIT);
      this.waiting.push(() => {
        if (!enough()) return false;
        clearTimeout(timer);
        resolve();
        return true;
      });
    });
  }
}

function listen(peer, events) {
  const replies = surface.replies;
  const reply = (method, kind) =>
    peer.onRequest(method, (request) => {
      events.add(kind, request.params);
      return replies[kind];
    });
  reply('elicitation/create', 'elicitation');
  reply('sampling/createMessage', 'sampling');
  reply('roots/list', 'roots');
  const note = (method, kind) => peer.onNotification(method, ({ params }) => events.add(kind, params));
  note('notifications/progress', 'progress');
  note('notifications/message', 'log');
  note('notifications/resources/updated', 'updated');
  note('notifications/tools/list_changed', 'toolsChanged');
}

async function concurrent(call) {
  const texts = Array.from({ length: CONCURRENT }, (_, number) => `call ${number}`);
  const results = await Promise.all(texts.map((text) => call('echo', { text })));
  return results.filter((result, number) => result.content[0].text === texts[number]).length;
}

/** Cancels a call that has begun; the server then says how its calls ended. */
async function cancel(call, events) {
  const begun = events.seen.progress?.length ?? 0;
  const abort = new AbortController();
  const running = call('slow', { ms: 600_000 }, { progressToken: 'slow-token' }, { signal: abort.signal });
  const ended = running.then(() => 'answered', () => 'cancelled');
  await events.wait('progress', begun + 1);
  abort.abort('enough');
  return { call: await ended, server: await outcome(call('slow', { ms: 0 })) };
}

/** Subscribes, makes the server announce changes, and ends the subscription. */
async function update({ client, era }, call, events) {
  const uri = 'peer://note';
  const announce = async () => {
    const result = await outcome(call('update', {}));
    await events.wait('updated', 1);
    await events.wait('toolsChanged', 1);
    return result;
  };
  if (era === 'modern') {
    const subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
    const result = await announce();
    await subscription.close();
    return { honored: plain(subscription.honoredFilter), result };
  }
  const subscribe = await outcome(client.subscribeResource({ uri }));
  const result = await announce();
  return { subscribe, result, unsubscribe: await outcome(client.unsubscribeResource({ uri })) };
}

async function session(peer, events) {
  const { client, era } = peer;
  const call = (name, args, meta, options) =>
    peer.call({ name, arguments: args, ...(meta && { _meta: meta }) }, options);
  const report = {
    version: peer.version(),
    capabilities: plain(client.getServerCapabilities()),
    instructions: client.getInstructions(),
    tools: await outcome(client.listTools()),
    resources: await outcome(client.listResources()),
    resourceTemplates: await outcome(client.listResourceTemplates()),
    prompts: await outcome(client.listPrompts()),
    echo: await outcome(call('echo', { text: 'Grüße ✓ \u2028 "quoted" \\ 𝄞' })),
    add: await outcome(call('add', { a: 0.1, b: 2 })),
    fail: await outcome(call('fail', {})),
    unknownTool: await outcome(call('no-such-tool', {})),
    progress: await outcome(call('progress', { steps: 4 }, { progressToken: 'progress-token' })),
  };
  await events.wait('progress', 4);
  report.cancel = await cancel(call, events);
  report.ask = await outcome(call('ask', {}));
  report.sample = await outcome(call('sample', {}));
  report.roots = await outcome(call('roots', {}));
  report.readNote = await outcome(client.readResource({ uri: 'peer://note' }));
  report.readItem = await outcome(client.readResource({ uri: 'peer://item/42' }));
  report.readMissing = await outcome(client.readResource({ uri: 'peer://nothing' }));
  report.prompt = await outcome(client.getPrompt({ name: 'greet', arguments: { name: 'Ada' } }));
  const argument = { name: 'name', value: 'A' };
  report.completion = await outcome(client.complete({ ref: { type: 'ref/prompt', name: 'greet' }, argument }));
  report.concurrent = await concurrent(call);
  report.update = await update(peer, call, events);
  if (era === 'legacy') {
    report.setLevel = await outcome(client.setLoggingLevel('debug'));
    report.ping = await outcome(client.ping());
  }
  report.log = await outcome(call('log', {}, era === 'modern' && { 'io.modelcontextprotocol/logLevel': 'debug' }));
  await events.wait('log', 1);
  return { ...report, events: events.seen };
}

/** What can be carried by a wire on which a server cannot ask its client anything. */
async function wireSession({ client, call: perform }, events) {
  const call = (name, args, meta, options) =>
    perform({ name, arguments: args, ...(meta && { _meta: meta }) }, options);
  const argument = { name: 'name', value: 'A' };
  return {
    tools: await outcome(client.listTools()),
    resources: await outcome(client.listResources()),
    resourceTemplates: await outcome(client.listResourceTemplates()),
    prompts: await outcome(client.listPrompts()),
    echo: await outcome(call('echo', { text: 'Grüße ✓ \u2028 "quoted" \\ 𝄞' })),
    add: await outcome(call('add', { a: 0.1, b: 2 })),
    fail: await outcome(call('fail', {})),
    cancel: await cancel(call, events),
    readNote: await outcome(client.readResource({ uri: 'peer://note' })),
    readItem: await outcome(client.readResource({ uri: 'peer://item/42' })),
    prompt: await outcome(client.getPrompt({ name: 'greet', arguments: { name: 'Ada' } })),
    completion: await outcome(client.complete({ ref: { type: 'ref/prompt', name: 'greet' }, argument })),
    concurrent: await concurrent(call),
  };
}

/** The way to a server: a process to be started, or the address of one, with the token in MCP_TOKEN, if any. An address that
 * ends in /sse is spoken to in the manner of 2024-11-05. */
function reach([command, ...args], { Stdio, StreamableHttp, Sse }) {
  if (!command.startsWith('http://')) return new Stdio({ command, args, stderr: 'inherit' });
  const token = process.env.MCP_TOKEN;
  const requestInit = { headers: token ? { Authorization: `Bearer ${token}` } : {} };
  const Transport = command.endsWith('/sse') ? Sse : StreamableHttp;
  return new Transport(new URL(command), { requestInit });
}

/** Runs the command line `client [--era …] [--only echo|wire] -- COMMAND … | ADDRESS`. `connect` makes a client; `transports` are
 * those of its SDK. */
export async function run(transports, connect) {
  const { values, positionals } = parseArgs({
    options: { era: { type: 'string', default: 'legacy' }, only: { type: 'string' } },
    allowPositionals: true,
  });
  setTimeout(() => {
    console.error(`no report after ${RUN_LIMIT} ms`);
    process.exit(1);
  }, RUN_LIMIT).unref();
  const events = new Events();
  const peer = await connect(values.era, reach(positionals, transports), (peer) => listen(peer, events));
  let report;
  if (values.only === 'wire') {
    report = await wireSession(peer, events);
  } else if (values.only) {
    const call = (name, args) => peer.call({ name, arguments: args });
    const echo = await outcome(call('echo', { text: 'hello' }));
    report = { version: peer.version(), echo, concurrent: await concurrent(call) };
  } else {
    report = await session(peer, events);
  }
  await peer.end?.();
  await peer.client.close();
  console.log(JSON.stringify(plain(report), null, 1));
}
