// A remote signer (NIP-46) by others: the one of applesauce-signers. Called like `signer.mjs`, and says the same.
import { NostrConnectProvider, PrivateKeySigner } from 'applesauce-signers';
import { Observable } from 'rxjs';
import { commandLine, hear, remember, say, tell } from './signer-relays.mjs';

const { file, manner, relays, address } = commandLine();
const { state, save, user, signer } = remember(file);
const elsewhere = relays.slice(1);
let listens;
const listening = new Promise((resolve) => { listens = resolve; });

const provider = new NostrConnectProvider({
  relays,
  upstream: new PrivateKeySigner(user),
  signer: new PrivateKeySigner(signer),
  bunkerSecret: address ? undefined : state.secret,
  subscriptionMethod: (named, [filter]) =>
    new Observable((subscriber) => hear(named, filter, (event) => subscriber.next(event), listens)),
  publishMethod: tell,
  onClientConnect: (client) => {
    state.client = client;
    save();
  },
  onSignEvent: (draft) => {
    say({ asked: 'sign_event', kind: draft.kind });
    return manner !== 'refuses';
  },
  onSwitchRelays: () => {
    say({ asked: 'switch_relays' });
    return elsewhere.length ? elsewhere : null;
  },
});
if (state.client && !address) {
  provider.client = state.client;
  provider.connected = true;
}
await provider.start(address);
await listening;
const bunker = address ? '' : `bunker://${await provider.signer.getPublicKey()}` +
  `?relay=${encodeURIComponent(relays[0])}&secret=${state.secret}`;
say({ ready: { bunker, user: await provider.upstream.getPublicKey() } });
