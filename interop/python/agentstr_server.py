"""A provider written with agentstr-sdk: one tool, `add`, called by kind 4 messages.

    NOSTR_NSEC=nsec1… agentstr_server.py RELAY

Says `{"ready": …}` once every message from now on will be answered, and then serves until it is stopped.
"""

import asyncio
import json
import sys

import agentstr_parts  # noqa: F401  (must come before agentstr)
from agentstr.mcp.nostr_mcp_server import NostrMCPServer
from agentstr.nostr_client import NostrClient
from pynostr.utils import get_timestamp


class Client(NostrClient):
    """Says when it begins to listen; the server itself does not."""

    async def direct_message_listener(self, *arguments, **named):
        named["timestamp"] = get_timestamp()
        print(json.dumps({"ready": {"pubkey": self.public_key.hex(), "npub": self.public_key.npub}}), flush=True)
        await super().direct_message_listener(*arguments, **named)


async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


asyncio.run(NostrMCPServer("adder", nostr_client=Client(relays=[sys.argv[1]]), tools=[add]).start())
