"""The turns of an agent with tools: its conversation, a model's messages, and where a tool runs."""
