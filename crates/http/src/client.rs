//! A remote MCP server reached over HTTP.
