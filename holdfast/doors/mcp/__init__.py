"""The door for coding agents: an MCP server over stdio or HTTP.

The host may be killed at any time: runs live in Temporal, and any other host finds them by id.
"""
