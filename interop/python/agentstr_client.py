"""A customer written with agentstr-sdk: calls tools by kind 4 messages.

    agentstr_client.py RELAY PROVIDER [TOOL ARGUMENTS]...

Prints the results of all calls as a list. Each call has a key of its own, because this client takes whatever the provider
sends to its key from the second of the request on for the answer.
"""

import asyncio
import json
import sys

import agentstr_parts  # noqa: F401  (must come before agentstr)
from agentstr.mcp.nostr_mcp_client import NostrMCPClient
from pynostr.key import PrivateKey

LIMIT = 30  # seconds; a hang must end as a failure


async def call(relay: str, provider: str, tool: str, arguments: str):
    client = NostrMCPClient(provider, relays=[relay], private_key=PrivateKey().nsec)
    result = await client.call_tool(tool, json.loads(arguments), timeout=LIMIT)
    if result is None:
        sys.exit(f"no answer to {tool} after {LIMIT} s")
    return result


async def main() -> None:
    relay, provider, *words = sys.argv[1:]
    calls = zip(words[::2], words[1::2], strict=True)
    print(json.dumps(await asyncio.gather(*(call(relay, provider, *each) for each in calls))))


asyncio.run(main())
