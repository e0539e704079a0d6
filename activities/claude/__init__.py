"""The Messages API of Claude. Only this room imports its SDK."""
