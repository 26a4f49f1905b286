"""Nutshell's own wallet: nutshell.py DIRECTORY MINT ARGUMENTS…, with the arguments of its command line."""

import os
import sys
import types

directory, mint, *rest = sys.argv[1:]
os.chdir(directory)
os.environ.update(HOME=directory, CASHU_DIR=directory, MINT_URL=mint, TOR="FALSE", LOG_LEVEL="WARNING")
# A Lightning node that Nutshell imports and nobody uses; the version that it wants has been withdrawn.
absent = types.ModuleType("breez_sdk_spark")
absent.__getattr__ = lambda name: type(name, (), {})
sys.modules["breez_sdk_spark"] = absent

from cashu.wallet.cli.cli import cli  # noqa: E402

sys.argv = ["cashu", "--host", mint, "--yes", *rest]
cli()
