// What the peer servers of both TypeScript SDKs answer. Only how a tool reaches its client differs between the SDKs, so
// each server passes an object with: progress(params), log(params), ask(kind), changed().
import { readFileSync } from 'node:fs';

export const surface = JSON.parse(readFileSync(new URL('../surface.json', import.meta.url)));

const text = (value, more = {}) => ({ content: [{ type: 'text', text: value }], ...more });

/** One line of JSON with sorted keys, so that every SDK's server answers alike. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const members = Object.keys(value).filter((key) => value[key] !== undefined).sort();
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(',')}}`;
}

/** The client's answer as a tool result. */
export function answered({ _meta, resultType, ...answer }) {
  return text(canonical(answer));
}

const slow = {
  started: 0,
  finished: 0,
  cancelled: 0,
  waiting: [],
  wait(ms, signal) {
    slow.started += 1;
    return new Promise((resolve) => {
      const end = (how) => {
        slow[how] += 1;
        clearTimeout(timer);
        resolve();
        if (slow.started === slow.finished + slow.cancelled) slow.waiting.splice(0).forEach((wake) => wake());
      };
      const timer = setTimeout(() => end('finished'), ms);
      signal.addEventListener('abort', () => end('cancelled'), { once: true });
    });
  },
  async report() {
    if (slow.started !== slow.finished + slow.cancelled) await new Promise((wake) => slow.waiting.push(wake));
    return `started=${slow.started} finished=${slow.finished} cancelled=${slow.cancelled}`;
  },
};

const tools = {
  echo: async ({ text: value }) => text(value),
  async add({ a, b }) {
    const sum = { sum: a + b };
    return text(JSON.stringify(sum), { structuredContent: sum, _meta: { 'example.org/trace': { hop: 1 } } });
  },
  async progress({ steps }, client) {
    for (let step = 1; step <= steps; step += 1) {
      await client.progress({ progress: step, total: steps, message: `step ${step}` });
    }
    return text(`${steps} steps`);
  },
  async slow({ ms }, client) {
    if (ms === 0) return text(await slow.report());
    await client.progress({ progress: 0, total: 1, message: 'started' });
    await slow.wait(ms, client.signal);
    return text('waited');
  },
  fail: async () => text('This tool always fails.', { isError: true }),
  async log(_, client) {
    await client.log({ level: 'warning', logger: 'peer', data: { hello: 'log' } });
    return text('logged');
  },
  ask: (_, client) => client.ask('elicitation'),
  sample: (_, client) => client.ask('sampling'),
  roots: (_, client) => client.ask('roots'),
  async update(_, client) {
    await client.changed();
    return text('announced');
  },
};

/** Runs a tool, or returns undefined when there is none of that name. */
export function callTool(name, args, client) {
  return Object.hasOwn(tools, name) ? tools[name](args ?? {}, client) : undefined;
}

/** The contents of a resource, or undefined. */
export function readResource(uri) {
  if (uri === 'peer://note') return { contents: [{ uri, mimeType: 'text/plain', text: 'a short one' }] };
  if (!uri.startsWith('peer://item/')) return undefined;
  return {
    contents: [
      { uri, mimeType: 'application/json', text: JSON.stringify({ id: uri.slice('peer://item/'.length) }) },
      { uri: `${uri}/raw`, mimeType: 'application/octet-stream', blob: 'AAECAw==' },
    ],
  };
}

export function getPrompt({ name }) {
  const content = { type: 'text', text: `Hello, ${name}!` };
  return { description: 'Greets somebody.', messages: [{ role: 'user', content }] };
}

export function complete(value) {
  const values = surface.completions.filter((name) => name.startsWith(value));
  return { completion: { values, total: values.length, hasMore: false } };
}
