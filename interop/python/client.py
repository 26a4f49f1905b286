"""An MCP client written with the Python SDK that uses everything a peer server offers and reports what it saw.

    client.py [--era legacy|modern] [--only echo|wire] -- COMMAND ARGUMENTS…
    client.py [--era legacy|modern] [--only echo|wire] -- http://ADDRESS/mcp

The second reaches a server that runs already, with the token in MCP_TOKEN, if any. An address that ends in /sse is spoken to
in the manner of 2024-11-05.

It prints one JSON report with sorted keys and without names, ids or times of this run, so that the report of a direct
session and the report of a session through a gateway must be equal byte by byte.
"""

import argparse
import asyncio
import json
import os
import pathlib
import signal
import sys
import warnings
from contextlib import AsyncExitStack

import mcp_types as types
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

warnings.simplefilter("ignore")

REPLIES = json.loads(pathlib.Path(__file__).resolve().parent.parent.joinpath("surface.json").read_text())["replies"]
RUN_LIMIT = 60  # seconds for the whole session; a hang must end as a failure
EVENT_LIMIT = 10  # seconds for a notification that was promised
CONCURRENT = 50
# What differs between any two sessions and says nothing about a loss.
PRIVATE_META = ("io.modelcontextprotocol/serverInfo", "io.modelcontextprotocol/subscriptionId", "progressToken")


def plain(value):
    """The value as the wire had it, without names and ids of this run."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(by_alias=True, mode="json", exclude_unset=True)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    result = {key: plain(item) for key, item in value.items() if key not in PRIVATE_META}
    if not result.get("_meta", True):
        del result["_meta"]
    return result


async def outcome(call):
    """The result of a call, or the error the server answered with."""
    try:
        return plain(await call)
    except MCPError as error:
        return {"error": {"code": error.error.code, "message": error.error.message, "data": error.error.data}}


class Events:
    """Notifications and requests that came from the server, in order per kind."""

    def __init__(self):
        self.seen = {}
        self.changed = asyncio.Condition()

    async def add(self, kind, value):
        async with self.changed:
            self.seen.setdefault(kind, []).append(plain(value))
            self.changed.notify_all()

    async def wait(self, kind, count):
        async def enough():
            async with self.changed:
                await self.changed.wait_for(lambda: len(self.seen.get(kind, [])) >= count)

        try:
            await asyncio.wait_for(enough(), EVENT_LIMIT)
        except TimeoutError:
            await self.add("missing", f"{count} × {kind}")

    async def on_elicit(self, context, params):
        await self.add("elicitation", params)
        return types.ElicitResult(**REPLIES["elicitation"])

    async def on_sample(self, context, params):
        await self.add("sampling", params)
        return types.CreateMessageResult(**REPLIES["sampling"])

    async def on_roots(self, context):
        await self.add("roots", {})
        return types.ListRootsResult(**REPLIES["roots"])

    async def on_log(self, params):
        await self.add("log", params)

    async def on_message(self, message):
        if isinstance(message, types.ResourceUpdatedNotification):
            await self.add("updated", message.params)
        elif isinstance(message, types.ToolListChangedNotification):
            await self.add("toolsChanged", {})


async def reach(stack, command):
    """The way to a server: a process to be started, or an address."""
    if not command[0].startswith("http://"):
        return stdio_client(StdioServerParameters(command=command[0], args=command[1:]))
    token = os.environ.get("MCP_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if command[0].endswith("/sse"):
        return sse_client(command[0], headers=headers)
    http_client = await stack.enter_async_context(create_mcp_http_client(headers=headers))
    return streamable_http_client(command[0], http_client=http_client)


async def connect(stack, era, command, events):
    """The low-level session, and the object whose calls also answer input_required results."""
    transport = await reach(stack, command)
    handlers = dict(
        elicitation_callback=events.on_elicit,
        sampling_callback=events.on_sample,
        list_roots_callback=events.on_roots,
        logging_callback=events.on_log,
        message_handler=events.on_message,
        log_level="debug",
    )
    if era == "modern":
        client = await stack.enter_async_context(Client(transport, cache=None, **handlers))
        return client.session, client
    read, write = await stack.enter_async_context(transport)
    session = await stack.enter_async_context(ClientSession(read, write, **handlers))
    await session.initialize()
    return session, session


async def progress(caller, events):
    async def on_progress(done, total, message):
        await events.add("progress", [done, total, message])

    result = await outcome(caller.call_tool("progress", {"steps": 4}, progress_callback=on_progress))
    await events.wait("progress", 4)
    return result


async def cancel(caller):
    """Cancels a call that has begun; the server then says how its calls ended."""
    begun = asyncio.Event()

    async def on_progress(done, total, message):
        begun.set()

    call = asyncio.create_task(caller.call_tool("slow", {"ms": 600_000}, progress_callback=on_progress))
    await asyncio.wait_for(begun.wait(), EVENT_LIMIT)
    call.cancel()
    try:
        await call
    except asyncio.CancelledError:
        pass
    return await outcome(caller.call_tool("slow", {"ms": 0}))


async def concurrent(caller):
    """Many calls at once: each must get its own answer."""

    async def one(number):
        result = await caller.call_tool("echo", {"text": f"call {number}"})
        return result.content[0].text == f"call {number}"

    return sum(await asyncio.gather(*(one(number) for number in range(CONCURRENT))))


async def update(session, caller, era, events):
    """Subscribes, makes the server announce changes, and ends the subscription."""
    if era == "modern":
        async with caller.listen(tools_list_changed=True, resource_subscriptions=["peer://note"]) as subscription:
            honored = plain(subscription.honored)
            result = await outcome(caller.call_tool("update", {}))
            await events.wait("updated", 1)
            await events.wait("toolsChanged", 1)
        return {"honored": honored, "result": result}
    subscribed = await outcome(session.subscribe_resource("peer://note"))
    result = await outcome(caller.call_tool("update", {}))
    await events.wait("updated", 1)
    await events.wait("toolsChanged", 1)
    return {"subscribe": subscribed, "result": result, "unsubscribe": await outcome(session.unsubscribe_resource("peer://note"))}


async def drive(session, caller, era, events):
    report = {
        "version": session.protocol_version,
        "capabilities": plain(session.server_capabilities),
        "instructions": session.instructions,
        "tools": await outcome(session.list_tools()),
        "resources": await outcome(session.list_resources()),
        "resourceTemplates": await outcome(session.list_resource_templates()),
        "prompts": await outcome(session.list_prompts()),
        "echo": await outcome(caller.call_tool("echo", {"text": "Grüße ✓ \u2028 \"quoted\" \\ 𝄞"})),
        "add": await outcome(caller.call_tool("add", {"a": 0.1, "b": 2})),
        "fail": await outcome(caller.call_tool("fail", {})),
        "unknownTool": await outcome(caller.call_tool("no-such-tool", {})),
        "progress": await progress(caller, events),
        "cancel": await cancel(caller),
        "ask": await outcome(caller.call_tool("ask", {})),
        "sample": await outcome(caller.call_tool("sample", {})),
        "roots": await outcome(caller.call_tool("roots", {})),
        "readNote": await outcome(session.read_resource("peer://note")),
        "readItem": await outcome(session.read_resource("peer://item/42")),
        "readMissing": await outcome(session.read_resource("peer://nothing")),
        "prompt": await outcome(session.get_prompt("greet", {"name": "Ada"})),
        "completion": await outcome(
            session.complete(types.PromptReference(type="ref/prompt", name="greet"), {"name": "name", "value": "A"})
        ),
        "concurrent": await concurrent(caller),
        "update": await update(session, caller, era, events),
    }
    if era == "legacy":
        report["setLevel"] = await outcome(session.set_logging_level("debug"))
        report["ping"] = await outcome(session.send_ping())
    report["log"] = await outcome(caller.call_tool("log", {}))
    await events.wait("log", 1)
    report["events"] = events.seen
    return report


async def drive_wire(session, caller, events):
    """What can be carried by a wire on which a server cannot ask its client anything."""
    return {
        "tools": await outcome(session.list_tools()),
        "resources": await outcome(session.list_resources()),
        "resourceTemplates": await outcome(session.list_resource_templates()),
        "prompts": await outcome(session.list_prompts()),
        "echo": await outcome(caller.call_tool("echo", {"text": "Grüße ✓ \u2028 \"quoted\" \\ 𝄞"})),
        "add": await outcome(caller.call_tool("add", {"a": 0.1, "b": 2})),
        "fail": await outcome(caller.call_tool("fail", {})),
        "cancel": await cancel(caller),
        "readNote": await outcome(session.read_resource("peer://note")),
        "readItem": await outcome(session.read_resource("peer://item/42")),
        "prompt": await outcome(session.get_prompt("greet", {"name": "Ada"})),
        "completion": await outcome(
            session.complete(types.PromptReference(type="ref/prompt", name="greet"), {"name": "name", "value": "A"})
        ),
        "concurrent": await concurrent(caller),
    }


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", choices=("legacy", "modern"), default="legacy")
    parser.add_argument("--only", choices=("echo", "wire"))
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    events = Events()
    async with AsyncExitStack() as stack:
        session, caller = await connect(stack, options.era, options.command, events)
        if options.only == "wire":
            report = await drive_wire(session, caller, events)
        elif options.only:
            report = {
                "version": session.protocol_version,
                "echo": await outcome(caller.call_tool("echo", {"text": "hello"})),
                "concurrent": await concurrent(caller),
            }
        else:
            report = await drive(session, caller, options.era, events)
    print(json.dumps(report, sort_keys=True, ensure_ascii=False, indent=1))


def give_up(signum, frame):
    sys.stderr.write(f"no report after {RUN_LIMIT} s\n")
    os._exit(1)


signal.signal(signal.SIGALRM, give_up)
signal.alarm(RUN_LIMIT)
asyncio.run(main())
