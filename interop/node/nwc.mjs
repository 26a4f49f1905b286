// Both ends of Nostr Wallet Connect (NIP-47) as Alby's SDK has them.
//
//     nwc.mjs customer SELLER BUYER            asks two wallets by their addresses for everything, and says what it saw
//     nwc.mjs wallet RELAY INVOICE PREIMAGE    a wallet that has one invoice and one payment, and says its address
//
// Each says it on one line of JSON. The wallet serves until its stdin is closed.
import { createHash, randomBytes } from 'node:crypto';
import { WebSocket } from 'ws';
import { getPublicKey } from 'nostr-tools/pure';

globalThis.WebSocket ??= WebSocket;
// The SDK talks to whoever reads stdout, which is for what we say.
console.log = console.info = console.debug = console.error;
const { NWCClient, NWCWalletService, NWCWalletServiceKeyPair } = await import('@getalby/sdk/nwc');

const say = (words) => new Promise((done) => process.stdout.write(`${JSON.stringify(words)}\n`, done));
const sha256 = (hex) => createHash('sha256').update(Buffer.from(hex, 'hex')).digest('hex');
const refusal = (error) => ({ code: error.code ?? error.name });

async function customer(sellerAddress, buyerAddress) {
  const [seller, buyer] = [sellerAddress, buyerAddress].map((url) => new NWCClient({ nostrWalletConnectUrl: url }));
  const { encryptions, notifications } = await buyer.getWalletServiceInfo();
  const { methods } = await seller.getInfo();
  const made = await seller.makeInvoice({ amount: 10_000, description: 'a call', expiry: 600 });
  const paid = await buyer.payInvoice({ invoice: made.invoice });
  const found = await seller.lookupInvoice({ payment_hash: made.payment_hash });
  const again = await buyer.payInvoice({ invoice: made.invoice }).catch(refusal);
  // One that is held.
  const preimage = randomBytes(32).toString('hex');
  const accepted = new Promise((resolve) => {
    seller.subscribeNotifications((notice) => resolve(notice.notification_type), ['hold_invoice_accepted']);
  });
  const held = await seller.makeHoldInvoice({ amount: 5_000, payment_hash: sha256(preimage) });
  const paying = buyer.payInvoice({ invoice: held.invoice });
  const notice = await accepted;
  await seller.settleHoldInvoice({ preimage });
  const settled = await paying;
  const balances = [await seller.getBalance(), await buyer.getBalance()].map(({ balance }) => balance);
  await say({
    encryptions,
    notifications,
    methods,
    encryption: buyer.encryptionType,
    paid: sha256(paid.preimage) === made.payment_hash,
    fees_paid: paid.fees_paid,
    state: found.state,
    again,
    notice,
    settled: settled.preimage === preimage,
    balances,
  });
  process.exit(0);
}

async function wallet(relayUrl, invoice, preimage) {
  const [walletSecret, clientSecret] = [randomBytes(32), randomBytes(32)];
  const keys = new NWCWalletServiceKeyPair(walletSecret.toString('hex'), getPublicKey(clientSecret));
  const service = new NWCWalletService({ relayUrl });
  const methods = ['get_info', 'get_balance', 'make_invoice', 'pay_invoice', 'lookup_invoice'];
  await service.publishWalletServiceInfoEvent(keys.walletSecret, methods, []);
  const payment_hash = sha256(preimage);
  const known = { invoice, payment_hash, amount: 10_000, created_at: 1, description: '', fees_paid: 0 };
  const result = async (result) => ({ result, error: undefined });
  await service.subscribe(keys, {
    getInfo: () => result({ alias: 'Alby', methods }),
    getBalance: () => result({ balance: 21_000 }),
    makeInvoice: () => result({ ...known, type: 'incoming', state: 'pending' }),
    payInvoice: () => result({ preimage, fees_paid: 7 }),
    lookupInvoice: async (request) =>
      request.payment_hash === payment_hash
        ? result({ ...known, type: 'incoming', state: 'settled', settled_at: 2, preimage })
        : { result: undefined, error: { code: 'NOT_FOUND', message: 'what is that?' } },
  });
  const relay = encodeURIComponent(relayUrl);
  await say({ uri: `nostr+walletconnect://${keys.walletPubkey}?relay=${relay}&secret=${clientSecret.toString('hex')}` });
  process.stdin.on('end', () => process.exit(0)).resume();
}

const [role, ...rest] = process.argv.slice(2);
await { customer, wallet }[role](...rest);
