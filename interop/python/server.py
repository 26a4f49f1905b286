"""A stdio MCP server with one of everything, written with the Python SDK's low-level API.

What it offers is described in ../surface.json and is the same for the peers of all SDKs. It speaks both eras; the
client's first request decides which.
"""

import asyncio
import json
import pathlib
import warnings

import mcp_types as types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError

warnings.simplefilter("ignore")

SURFACE = json.loads(pathlib.Path(__file__).resolve().parent.parent.joinpath("surface.json").read_text())
MODERN = "2026-07-28"
BUS = InMemorySubscriptionBus()


class Slow:
    """How the calls of the tool `slow` ended."""

    def __init__(self):
        self.started = self.finished = self.cancelled = 0
        self.ended = asyncio.Condition()

    async def wait(self, ms):
        self.started += 1
        try:
            await asyncio.sleep(ms / 1000)
            self.finished += 1
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            await asyncio.shield(self._wake())

    async def _wake(self):
        async with self.ended:
            self.ended.notify_all()

    async def report(self):
        async with self.ended:
            await self.ended.wait_for(lambda: self.started == self.finished + self.cancelled)
        return f"started={self.started} finished={self.finished} cancelled={self.cancelled}"


SLOW = Slow()


def text(value, **more):
    return types.CallToolResult(content=[types.TextContent(type="text", text=value)], **more)


def canonical(model):
    """The answer of a client as one line of JSON with sorted keys."""
    value = model if isinstance(model, dict) else model.model_dump(by_alias=True, mode="json", exclude_none=True)
    value.pop("_meta", None)
    value.pop("resultType", None)
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


async def echo(ctx, params, arguments):
    return text(arguments["text"])


async def add(ctx, params, arguments):
    result = {"sum": arguments["a"] + arguments["b"]}
    return text(json.dumps(result), structuredContent=result, _meta={"example.org/trace": {"hop": 1}})


async def progress(ctx, params, arguments):
    steps = arguments["steps"]
    for step in range(1, steps + 1):
        await ctx.session.report_progress(step, steps, f"step {step}")
    return text(f"{steps} steps")


async def slow(ctx, params, arguments):
    if arguments["ms"] == 0:
        return text(await SLOW.report())
    await ctx.session.report_progress(0, 1, "started")
    await SLOW.wait(arguments["ms"])
    return text("waited")


async def fail(ctx, params, arguments):
    return text("This tool always fails.", isError=True)


async def log(ctx, params, arguments):
    await ctx.session.send_log_message("warning", {"hello": "log"}, logger="peer", related_request_id=ctx.request_id)
    return text("logged")


async def client_answer(ctx, params, request, ask):
    """Asks the client: with a request of our own in the old era, with an input_required result in the new one."""
    if ctx.protocol_version < MODERN:
        return text(canonical(await ask()))
    if not params.input_responses:
        return types.InputRequiredResult(inputRequests={"answer": request}, requestState="round-1")
    assert params.request_state == "round-1", "the request state came back changed"
    return text(canonical(params.input_responses["answer"]))


async def ask(ctx, params, arguments):
    form = SURFACE["elicitation"]
    request = types.ElicitRequest(params=types.ElicitRequestFormParams(**form))
    return await client_answer(
        ctx, params, request, lambda: ctx.session.elicit_form(form["message"], form["requestedSchema"], ctx.request_id)
    )


async def sample(ctx, params, arguments):
    request = types.CreateMessageRequest(params=types.CreateMessageRequestParams(**SURFACE["sampling"]))
    return await client_answer(
        ctx, params, request, lambda: ctx.session.send_request(request, types.CreateMessageResult)
    )


async def roots(ctx, params, arguments):
    return await client_answer(ctx, params, types.ListRootsRequest(), lambda: ctx.session.list_roots())


async def update(ctx, params, arguments):
    if ctx.protocol_version < MODERN:
        await ctx.session.send_resource_updated("peer://note")
        await ctx.session.send_tool_list_changed()
    else:
        await BUS.publish(ResourceUpdated(uri="peer://note"))
        await BUS.publish(ToolsListChanged())
    return text("announced")


TOOLS = {tool.__name__: tool for tool in (echo, add, progress, slow, fail, log, ask, sample, roots, update)}


async def call_tool(ctx, params):
    tool = TOOLS.get(params.name)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await tool(ctx, params, params.arguments or {})


async def list_tools(ctx, params):
    return types.ListToolsResult(tools=SURFACE["tools"], _meta={"example.org/page": 1})


async def list_resources(ctx, params):
    return types.ListResourcesResult(resources=SURFACE["resources"])


async def list_templates(ctx, params):
    return types.ListResourceTemplatesResult(resourceTemplates=SURFACE["resourceTemplates"])


async def list_prompts(ctx, params):
    return types.ListPromptsResult(prompts=SURFACE["prompts"])


async def read_resource(ctx, params):
    uri = str(params.uri)
    if uri == "peer://note":
        return types.ReadResourceResult(contents=[{"uri": uri, "mimeType": "text/plain", "text": "a short one"}])
    if uri.startswith("peer://item/"):
        item = json.dumps({"id": uri.removeprefix("peer://item/")})
        return types.ReadResourceResult(
            contents=[
                {"uri": uri, "mimeType": "application/json", "text": item},
                {"uri": uri + "/raw", "mimeType": "application/octet-stream", "blob": "AAECAw=="},
            ]
        )
    raise MCPError(-32002 if ctx.protocol_version < MODERN else types.INVALID_PARAMS, f"No such resource: {uri}")


async def get_prompt(ctx, params):
    message = {"role": "user", "content": {"type": "text", "text": f"Hello, {params.arguments['name']}!"}}
    return types.GetPromptResult(description="Greets somebody.", messages=[message])


async def complete(ctx, params):
    values = [name for name in SURFACE["completions"] if name.startswith(params.argument.value)]
    return types.CompleteResult(completion={"values": values, "total": len(values), "hasMore": False})


async def accept(ctx, params):
    return types.EmptyResult()


async def main():
    server = Server(
        "python-peer",
        version="1",
        instructions=SURFACE["instructions"],
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=accept,
        on_unsubscribe_resource=accept,
        on_subscriptions_listen=ListenHandler(BUS),
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=accept,
    )
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


asyncio.run(main())
