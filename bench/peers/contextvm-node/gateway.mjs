// The stdio gateway of the Nostr benchmark, written with ContextVM's TypeScript SDK.
//
// node gateway.mjs RELAY plain|sealed COMMAND [ARGUMENT…] prints {"ready":{"pubkey":"…"}} once it has subscribed.
import { randomBytes } from 'node:crypto';
import { EncryptionMode, GiftWrapMode } from '@contextvm/sdk/core';
import { NostrMCPGateway } from '@contextvm/sdk/gateway';
import { ApplesauceRelayPool } from '@contextvm/sdk/relay';
import { PrivateKeySigner } from '@contextvm/sdk/signer';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [relay, mode, command, ...args] = process.argv.slice(2);
const signer = new PrivateKeySigner(randomBytes(32).toString('hex'));
const gateway = new NostrMCPGateway({
  mcpClientTransport: new StdioClientTransport({ command, args }),
  nostrTransportOptions: {
    signer,
    relayHandler: new ApplesauceRelayPool([relay]),
    encryptionMode: mode === 'sealed' ? EncryptionMode.REQUIRED : EncryptionMode.DISABLED,
    giftWrapMode: GiftWrapMode.PERSISTENT,
    // Nothing but the calls: announcements would go to relays on the internet too.
    publishRelayList: false,
    bootstrapRelayUrls: [],
    logLevel: 'error',
  },
});
await gateway.start();
console.log(JSON.stringify({ ready: { pubkey: await signer.getPublicKey() } }));
