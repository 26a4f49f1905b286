"""LNbits on a free port of this machine, with a Lightning node that is only played, and two wallets on it.

    lnbits_server.py [--balance SAT]

Says `{"ready": {"url": …, "seller": KEYS, "buyer": KEYS}}` once it serves, where KEYS are the keys of a wallet that may do
everything (`admin`) and that may only receive (`invoice`), and serves until its stdin is closed. The buyer has a balance.
"""

import argparse
import asyncio
import importlib.util
import json
import os
import socket
import sys
import tempfile
import urllib.request

NAME = "rialto"
PASSWORD = "a password for a test"


def prepare(directory):
    """Everything that LNbits reads when it is imported. It finds its own files only from where it is installed."""
    os.environ.update(
        HOME=directory,
        LNBITS_DATA_FOLDER=directory,
        LNBITS_ADMIN_UI="true",
        LNBITS_BACKEND_WALLET_CLASS="FakeWallet",
        LNBITS_EXTENSIONS_DEFAULT_INSTALL="",
        LNBITS_EXTENSIONS_MANIFESTS="",
        FAKE_WALLET_SECRET="played",
    )
    os.chdir(os.path.dirname(os.path.dirname(importlib.util.find_spec("lnbits").origin)))


def mend():
    """The node that is played writes invoices without the features that BOLT 11 wants, which every real node has."""
    from bolt11 import TagChar
    from bolt11.models.features import Feature, Features, FeatureState
    from lnbits.wallets import fake

    encode = fake.encode
    wanted = {Feature.var_onion_optin: FeatureState.supported, Feature.payment_secret: FeatureState.supported}

    def with_features(invoice, key):
        invoice.tags.add(TagChar.features, Features.from_feature_list(wanted))
        return encode(invoice, key)

    fake.encode = with_features


def furnish(url, balance):
    """Becomes the owner of the new server, and makes two wallets."""

    def ask(method, path, token=None, **body):
        headers = {"content-type": "application/json"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        request = urllib.request.Request(url + path, json.dumps(body).encode(), headers, method=method)
        # A proxy has no place between two programs on one machine.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return json.load(answer)

    owner = ask("PUT", "/api/v1/auth/first_install", username=NAME, password=PASSWORD, password_repeat=PASSWORD)
    token = owner["access_token"]
    wallets = {name: ask("POST", "/api/v1/wallet", token, name=name) for name in ("seller", "buyer")}
    ask("PUT", "/users/api/v1/balance", token, id=wallets["buyer"]["id"], amount=balance)
    return {name: {"admin": wallet["adminkey"], "invoice": wallet["inkey"]} for name, wallet in wallets.items()}


async def closed():
    """Waits until stdin is closed."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        pass


async def main(options, directory, out):
    prepare(directory)
    import uvicorn

    mend()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config("lnbits.__main__:app", log_level="warning", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        if serving.done():
            sys.exit("LNbits does not start")
        await asyncio.sleep(0.01)
    wallets = await asyncio.to_thread(furnish, url, options.balance)
    print(json.dumps({"ready": {"url": url, **wallets}}), file=out, flush=True)
    await closed()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--balance", type=int, default=1000)
    # It logs to stdout, which is for what we say.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        asyncio.new_event_loop().run_until_complete(main(parser.parse_args(), temporary, out))
    # Nothing that it is doing has to be finished: who closes stdin wants it to be gone.
    os._exit(0)
