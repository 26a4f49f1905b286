// A provider with a manifest (kind 30200) that is called by encrypted messages, written with nostr-tools.
//
//     dm-provider.mjs RELAY OPTIONS
//
// OPTIONS is a JSON object; its members, all optional:
//
//     encryption   the value of that tag; without it there is no such tag
//     mute         answers name no request
//     hold         after its first answer, so many requests are collected and then answered, the last one first
//
// Prints {"ready": …} and then {"asked": …} for each request, with the number of requests that are open.
import * as nip04 from 'nostr-tools/nip04';
import * as nip17 from 'nostr-tools/nip17';
import { npubEncode } from 'nostr-tools/nip19';
import { finalizeEvent, generateSecretKey, getPublicKey, verifyEvent } from 'nostr-tools/pure';
import { Relay, useWebSocketImplementation } from 'nostr-tools/relay';
import WebSocket from 'ws';

useWebSocketImplementation(WebSocket);
const LIFETIME = 170_000; // nothing that a broken test leaves behind lives longer
setTimeout(() => process.exit(70), LIFETIME);
process.stdin.on('end', () => process.exit(0)).resume();

const [url, given] = process.argv.slice(2);
const options = JSON.parse(given ?? '{}');
const secret = generateSecretKey();
const me = getPublicKey(secret);
const relay = await Relay.connect(url);
const say = (value) => console.log(JSON.stringify(value));
const now = () => Math.floor(Date.now() / 1000);
const publish = (kind, tags, content) => relay.publish(finalizeEvent({ kind, created_at: now(), tags, content }, secret));

const numbers = (...names) => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, { type: 'number' }])),
  required: names,
});
const text = (value) => ({ content: [{ type: 'text', text: value }] });

/** What is published, and what is answered. */
const tools = [
  {
    tool_name: 'add',
    description: 'Adds two numbers.',
    input_schema: numbers('a', 'b'),
    output_schema: numbers('sum'),
    answer: ({ a, b }) => ({ sum: a + b }),
  },
  {
    tool_name: 'echo',
    description: 'Returns the text it was given.',
    input_schema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    answer: (given) => text(given.text),
  },
  { tool_name: 'bare', answer: () => ({ anything: ['goes'] }) },
  { tool_name: 'wrong', output_schema: numbers('sum'), answer: () => ({ sum: 'five' }) },
  { tool_name: 'fail', answer: () => ({ error: { code: 'no_luck', message: 'not today' } }) },
  { tool_name: 'twice', description: 'The first one counts.', answer: () => text('first') },
  { tool_name: 'twice', description: 'Nobody can call this.' },
  { description: 'Has no name.' },
  { tool_name: 'elsewhere', input_schema: { $ref: 'https://example.com/schema.json' } },
];

function answerTo({ tool_name: name, arguments: given }) {
  const tool = tools.find(({ tool_name, answer }) => tool_name === name && answer);
  return tool ? tool.answer(given) : { error: { code: 'unknown_tool', message: `there is no ${name}` } };
}

async function send({ id, kind, customer, request }) {
  const content = JSON.stringify(answerTo(request));
  if (kind === 14) {
    const answered = options.mute ? undefined : { eventId: id };
    return relay.publish(nip17.wrapEvent(secret, { publicKey: customer }, content, undefined, answered));
  }
  const tags = options.mute ? [['p', customer]] : [['p', customer], ['e', id]];
  return publish(4, tags, nip04.encrypt(secret, customer, content));
}

const held = [];
let [asked, answered] = [0, 0];

async function onevent(event) {
  if (!verifyEvent(event)) throw new Error(`not signed correctly: ${JSON.stringify(event)}`);
  const inner = event.kind === 1059 ? nip17.unwrapEvent(event, secret) : event;
  const content = event.kind === 1059 ? inner.content : nip04.decrypt(secret, event.pubkey, event.content);
  if (!content.startsWith('{')) return;
  const request = JSON.parse(content);
  held.push({ id: inner.id, kind: inner.kind, customer: inner.pubkey, request });
  asked += 1;
  say({ asked: { kind: inner.kind, tags: inner.tags, request, open: asked - answered } });
  if (answered > 0 && held.length < (options.hold ?? 1)) return;
  for (const each of held.splice(0).reverse()) {
    answered += 1;
    await send(each);
  }
}

const messages = { kinds: [4, 1059], '#p': [me] };
await new Promise((resolve) => {
  const failed = (error) => {
    console.error(error);
    process.exit(1);
  };
  relay.subscribe([messages], { onevent: (event) => onevent(event).catch(failed), oneose: resolve });
});
const tags = [['d', 'other'], ['t', 'mcp'], ['relays', url]];
if (options.encryption) tags.push(['encryption', options.encryption]);
if (options.encryption?.includes('nip59')) await publish(10050, [['relay', url]], '');
const shown = tools.map(({ answer, ...tool }) => tool);
const manifest = { mcp_version: '0.1', name: 'other', description: 'Made with nostr-tools', tools: shown };
await publish(30200, tags, JSON.stringify(manifest));
say({ ready: { pubkey: me, npub: npubEncode(me) } });
