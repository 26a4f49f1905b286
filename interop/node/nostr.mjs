// A customer of a DVMCP provider, written with nostr-tools, an independent implementation of the Nostr protocol.
//
//     nostr.mjs RELAY PROVIDER plain|sealed COMMAND CONTENT
//
// It publishes one request, waits for the 6910 and prints all answers in the order in which they came. Every layer of
// what comes is checked by nostr-tools.
import { finalizeEvent, generateSecretKey, getPublicKey, verifyEvent } from 'nostr-tools/pure';
import * as nip59 from 'nostr-tools/nip59';
import { Relay, useWebSocketImplementation } from 'nostr-tools/relay';
import WebSocket from 'ws';

useWebSocketImplementation(WebSocket);
const LIMIT = 30_000; // a hang must end as a failure
const [url, provider, how, command, content] = process.argv.slice(2);
setTimeout(() => {
  console.error(`no answer after ${LIMIT} ms`);
  process.exit(1);
}, LIMIT).unref();

const secret = generateSecretKey();
const me = getPublicKey(secret);
const template = {
  kind: 5910,
  created_at: Math.floor(Date.now() / 1000),
  tags: [['c', command], ['p', provider], ['output', 'application/json']],
  content,
};
const relay = await Relay.connect(url);
const request = how === 'sealed' ? nip59.wrapEvent(template, secret, provider) : finalizeEvent(template, secret);
const id = how === 'sealed' ? nip59.createRumor(template, secret).id : request.id;

const answers = [];
const done = new Promise((resolve, reject) => {
  const onevent = (event) => {
    if (!verifyEvent(event)) return reject(new Error(`not signed correctly: ${JSON.stringify(event)}`));
    const inner = how === 'sealed' ? nip59.unwrapEvent(event, secret) : event;
    if (!inner.tags.some(([name, value]) => name === 'e' && value === id)) return;
    answers.push({ kind: inner.kind, tags: inner.tags, content: inner.content, author: inner.pubkey });
    if (inner.kind === 6910) resolve();
  };
  const filter = how === 'sealed' ? { kinds: [1059], '#p': [me] } : { kinds: [6910, 7000], '#e': [id] };
  relay.subscribe([filter], { onevent });
});
await relay.publish(request);
await done;
console.log(JSON.stringify({ me, id, answers }));
relay.close();
process.exit(0);
