"""What a deployment keeps: the store of blobs, what of it is needed, and how the rest goes away."""

from deployment.storage.directory import BadStore, DirectoryStore

__all__ = ["BadStore", "DirectoryStore"]
