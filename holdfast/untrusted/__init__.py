"""What strangers wrote, opened within bounds: files, JSON, programs over them, secrets in them."""
