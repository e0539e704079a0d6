"""Roles, playbooks and templates: found in folders, read, and refused with the reason."""
