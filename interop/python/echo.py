"""The echo server of the benchmark, written with the Python SDK (low-level API: the fastest it offers)."""

import asyncio

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def list_tools(ctx, params):
    return types.ListToolsResult(tools=[types.Tool(name="echo", inputSchema=SCHEMA)])


async def call_tool(ctx, params):
    return types.CallToolResult(content=[types.TextContent(type="text", text=params.arguments["text"])])


async def main():
    server = Server("python-echo", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


asyncio.run(main())
