// A customer of providers with a manifest (kind 30200), written with nostr-tools.
//
//     dm-customer.mjs RELAY PROVIDER read
//     dm-customer.mjs RELAY PROVIDER nip04|nip17 '[{"text": …, "silent": false}, …]'
//
// `read` prints what the provider has published about itself. Otherwise all texts are sent at once, each as a message of
// its own. When each has been answered that is not `silent`, everything that the provider sent is printed in the order in
// which it came. `request` is the position of the message that an answer names.
import * as nip04 from 'nostr-tools/nip04';
import * as nip17 from 'nostr-tools/nip17';
import * as nip59 from 'nostr-tools/nip59';
import { finalizeEvent, generateSecretKey, getPublicKey, verifyEvent } from 'nostr-tools/pure';
import { Relay, useWebSocketImplementation } from 'nostr-tools/relay';
import WebSocket from 'ws';

useWebSocketImplementation(WebSocket);
const LIMIT = 60_000; // a hang must end as a failure
const [url, provider, how, list] = process.argv.slice(2);
const answers = [];
setTimeout(() => {
  console.error(`not done after ${LIMIT} ms: ${JSON.stringify(answers)}`);
  process.exit(1);
}, LIMIT).unref();

const secret = generateSecretKey();
const me = getPublicKey(secret);
const relay = await Relay.connect(url);

function checked(event) {
  if (!verifyEvent(event)) throw new Error(`not signed correctly: ${JSON.stringify(event)}`);
  return event;
}

function read() {
  const events = [];
  return new Promise((resolve) => {
    relay.subscribe([{ kinds: [30200, 10050], authors: [provider] }], {
      onevent: (event) => events.push(checked(event)),
      oneose: () => resolve(events),
    });
  });
}

const seconds = () => Math.ceil(Date.now() / 1000);

/** The event to publish, and the id that an answer will name. */
function message(text) {
  if (how === 'nip04') {
    const content = nip04.encrypt(secret, provider, text);
    const event = { kind: 4, created_at: Math.floor(Date.now() / 1000), tags: [['p', provider]], content };
    const signed = finalizeEvent(event, secret);
    return { event: signed, id: signed.id };
  }
  // nip17 does not tell the id of what is inside. It can be computed if the time is known.
  for (;;) {
    const created_at = seconds();
    const event = nip17.wrapEvent(secret, { publicKey: provider }, text);
    if (seconds() !== created_at) continue;
    return { event, id: nip59.createRumor({ kind: 14, created_at, tags: [['p', provider]], content: text }, secret).id };
  }
}

function opened(event) {
  if (how === 'nip17') return nip17.unwrapEvent(event, secret);
  return { ...event, content: nip04.decrypt(secret, provider, event.content) };
}

async function ask(messages) {
  const waiting = new Set(messages.filter(({ silent }) => !silent).map(({ id }) => id));
  const filter = how === 'nip17' ? { kinds: [1059] } : { kinds: [4], authors: [provider] };
  const done = new Promise((resolve, reject) => {
    const onevent = (event) => {
      try {
        const { kind, pubkey, tags, content } = opened(checked(event));
        const named = tags.filter(([name]) => name === 'e').map(([, id]) => id);
        const request = messages.findIndex(({ id }) => named.includes(id));
        answers.push({ request, kind, author: pubkey, tags, content });
        named.forEach((id) => waiting.delete(id));
        if (waiting.size === 0) resolve();
      } catch (error) {
        reject(error);
      }
    };
    relay.subscribe([{ ...filter, '#p': [me] }], { onevent });
  });
  await Promise.all(messages.map(({ event }) => relay.publish(event)));
  await done;
}

if (how === 'read') {
  console.log(JSON.stringify({ events: await read() }));
} else {
  const messages = JSON.parse(list).map(({ text, silent }) => ({ silent, ...message(text) }));
  await ask(messages);
  console.log(JSON.stringify({ me, ids: messages.map(({ id }) => id), answers }));
}
relay.close();
process.exit(0);
