// What both signers need: relays, a state that outlives them, and words for the test that watches them.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { generateSecretKey } from 'nostr-tools/pure';
import { SimplePool, useWebSocketImplementation } from 'nostr-tools/pool';
import { bytesToHex, hexToBytes } from 'nostr-tools/utils';
import WebSocket from 'ws';

useWebSocketImplementation(WebSocket);
export const pool = new SimplePool();

/** `signer… STATE MANNER RELAYS [ADDRESS]`, with relays separated by commas. */
export function commandLine() {
  const [file, manner, relays, address] = process.argv.slice(2);
  return { file, manner, relays: relays.split(','), address };
}

/** The keys and the client of this signer: made once, and kept in its file. */
export function remember(file) {
  const kept = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  const fresh = () => bytesToHex(generateSecretKey());
  const state = { user: fresh(), signer: fresh(), secret: fresh().slice(0, 16), client: null, ...kept };
  const save = () => {
    writeFileSync(`${file}.new`, JSON.stringify(state));
    renameSync(`${file}.new`, file);
  };
  save();
  return { state, save, user: hexToBytes(state.user), signer: hexToBytes(state.signer) };
}

/** Tells the test. */
export const say = (value) => console.log(JSON.stringify(value));

/** Hears of what fits on all relays; `ready` is called when all of them listen. */
export function hear(relays, filter, onevent, ready) {
  let missing = relays.length;
  const subscriptions = relays.map((relay) =>
    pool.subscribe([relay], filter, { onevent, oneose: () => --missing || ready?.() }));
  return () => subscriptions.forEach((subscription) => subscription.close());
}

/** Publishes to all relays, of which some may be gone. */
export const tell = (relays, event) => Promise.any(pool.publish(relays, event)).catch(() => {});
