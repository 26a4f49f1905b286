"""A Cashu mint (Nutshell) on a free port of this machine, with a Lightning node that is only played.

    mint.py [--fee PPK] [--manual] [--directory DIRECTORY] [--port PORT]

Says `{"ready": {"url": …}}` once it serves, and serves until its stdin is closed. `--fee` is what it keeps of each coin that
is changed, in thousandths of a satoshi (100 unless told otherwise, as with Nutshell). Its invoices are paid by nobody as soon
as anybody asks for their state; with `--manual` only when told to. A line on stdin is one of

    pay INVOICE                          an invoice of this mint's has been paid; answers `{"paid": …}`
    outgoing SETTLED|PENDING|FAILED      how payments by this mint end from now on; answers `{"outgoing": …}`

With a directory it keeps its keys and its memory there, so that it can be started again.
"""

import argparse
import asyncio
import json
import os
import socket
import sys
import tempfile
import types


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fee", type=int, default=100)
    parser.add_argument("--manual", action="store_true")
    parser.add_argument("--directory")
    parser.add_argument("--port", type=int, default=0)
    return parser.parse_args()


def say(**words):
    print(json.dumps(words), flush=True)


def prepare(options, directory):
    """Everything that Nutshell reads when it is imported."""
    key = os.path.join(directory, "key")
    if not os.path.exists(key):
        with open(key, "w") as file:
            file.write(os.urandom(32).hex())
    # It looks for `.env` in the working directory and at home.
    os.chdir(directory)
    os.environ.update(
        HOME=directory,
        CASHU_DIR=directory,
        MINT_DATABASE=directory,
        MINT_PRIVATE_KEY=open(key).read(),
        MINT_BACKEND_BOLT11_SAT="FakeWallet",
        MINT_INPUT_FEE_PPK=str(options.fee),
        MINT_QUOTE_BACKEND_CHECK_RATE_LIMIT="0",
        MINT_RATE_LIMIT="FALSE",
        FAKEWALLET_BRR=str(not options.manual).upper(),
        FAKEWALLET_DELAY_INCOMING_PAYMENT="0",
        FAKEWALLET_DELAY_OUTGOING_PAYMENT="0",
        FAKEWALLET_BALANCE_SAT="100000000",
        TOR="FALSE",
        LOG_LEVEL="WARNING",
    )
    # A Lightning node that Nutshell imports and nobody uses; the version that it wants has been withdrawn.
    absent = types.ModuleType("breez_sdk_spark")
    absent.__getattr__ = lambda name: type(name, (), {})
    sys.modules["breez_sdk_spark"] = absent
    # It begins with a list of all its settings.
    from loguru import logger

    logger.remove()


async def obey(wallet, settings):
    """Does what stdin says, until it is closed."""
    from bolt11 import decode

    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        match line.decode().split():
            case ["pay", invoice]:
                hash = decode(invoice).payment_hash
                made = next(made for made in wallet.created_invoices if made.payment_hash == hash)
                wallet.paid_invoices_incoming.append(made)
                await wallet.paid_invoices_queue.put(made)
                say(paid=hash)
            case ["outgoing", state]:
                settings.fakewallet_pay_invoice_state = state
                settings.fakewallet_payment_state = state
                say(outgoing=state)


async def main(options, directory):
    prepare(options, directory)
    import uvicorn
    from cashu.core.settings import settings
    from cashu.lightning.base import PaymentStatus, PaymentStatusResult
    from cashu.lightning.fake import FakeWallet

    asked = FakeWallet.get_invoice_status

    async def status(self, checking_id):
        # Without this, an invoice that nobody has paid yet does not exist.
        if options.manual and not any(paid.payment_hash == checking_id for paid in self.paid_invoices_incoming):
            return PaymentStatus(result=PaymentStatusResult.PENDING)
        return await asked(self, checking_id)

    FakeWallet.get_invoice_status = status
    from cashu.mint.startup import ledger

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", options.port))
    server = uvicorn.Server(uvicorn.Config("cashu.mint.app:app", log_level="warning", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        if serving.done():
            sys.exit("the mint does not start")
        await asyncio.sleep(0.01)
    say(ready={"url": f"http://127.0.0.1:{listener.getsockname()[1]}"})
    backends = next(iter(ledger.backends.values()))
    await obey(next(iter(backends.values())), settings)


if __name__ == "__main__":
    options = arguments()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main(options, os.path.abspath(options.directory or temporary)))
    # Nothing that it is doing has to be finished: who closes stdin wants it to be gone.
    os._exit(0)
