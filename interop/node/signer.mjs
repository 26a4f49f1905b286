// A remote signer (NIP-46) of its own, written from the NIP with nostr-tools.
//
//     signer.mjs STATE honest|refuses|silent|asks RELAYS [nostrconnect://…]
//
// Its state survives it: a client that was let in once is known after a restart. It listens on all relays; its address names
// the first one, and clients who ask are sent to the others. It says what it does, one JSON object per line.
import * as nip44 from 'nostr-tools/nip44';
import { finalizeEvent, getPublicKey, verifyEvent } from 'nostr-tools/pure';
import { commandLine, hear, remember, say, tell } from './signer-relays.mjs';

const KIND = 24133;
const { file, manner, relays, address } = commandLine();
const { state, save, user, signer } = remember(file);
const me = getPublicKey(signer);
const elsewhere = relays.slice(1);

function send(to, message) {
  const content = nip44.encrypt(JSON.stringify(message), nip44.getConversationKey(signer, to));
  const created_at = Math.floor(Date.now() / 1000);
  return tell(relays, finalizeEvent({ kind: KIND, created_at, tags: [['p', to]], content }, signer));
}

function connect(client, [target, secret]) {
  if (target !== me) throw new Error('that is not me');
  if (secret !== state.secret) throw new Error('wrong secret');
  state.client = client;
  save();
  return 'ack';
}

function sign(text) {
  if (manner === 'refuses') throw new Error('the owner said no');
  const { kind, content, tags, created_at } = JSON.parse(text);
  return JSON.stringify(finalizeEvent({ kind, content, tags, created_at }, user));
}

function serve(client, method, params) {
  if (method === 'connect') return connect(client, params);
  if (client !== state.client) throw new Error('I do not know you');
  const key = () => nip44.getConversationKey(user, params[0]);
  switch (method) {
    case 'get_public_key': return getPublicKey(user);
    case 'ping': return 'pong';
    case 'sign_event': return sign(params[0]);
    case 'nip44_encrypt': return nip44.encrypt(params[1], key());
    case 'nip44_decrypt': return nip44.decrypt(params[1], key());
    case 'switch_relays': return elsewhere.length ? JSON.stringify(elsewhere) : null;
    default: throw new Error(`I cannot ${method}`);
  }
}

async function onevent(event) {
  if (!verifyEvent(event)) return;
  const text = nip44.decrypt(event.content, nip44.getConversationKey(signer, event.pubkey));
  const { id, method, params } = JSON.parse(text);
  say({ asked: method, kind: method === 'sign_event' ? JSON.parse(params[0]).kind : undefined });
  if (method === 'sign_event' && manner === 'silent') return;
  if (method === 'sign_event' && manner === 'asks') {
    await send(event.pubkey, { id, result: 'auth_url', error: 'https://signer.example/allow' });
  }
  let message;
  try {
    message = { id, result: serve(event.pubkey, method, params) };
  } catch (error) {
    message = { id, result: '', error: error.message };
  }
  await send(event.pubkey, message);
}

const seen = new Set();
const once = (event) => seen.has(event.id) || (seen.add(event.id), onevent(event));
const since = Math.floor(Date.now() / 1000) - 5;
hear(relays, { kinds: [KIND], '#p': [me], since }, once, async () => {
  const at = encodeURIComponent(relays[0]);
  say({ ready: { bunker: `bunker://${me}?relay=${at}&secret=${state.secret}`, user: getPublicKey(user) } });
  if (!address) return;
  const invitation = new URL(address);
  state.client = invitation.host || invitation.pathname.replace(/^\/\//, '');
  save();
  await send(state.client, { id: 'hello', result: invitation.searchParams.get('secret') });
});
