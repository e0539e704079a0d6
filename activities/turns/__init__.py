"""The turns of an agent with tools: its conversation, what a model said, and where a tool runs."""
