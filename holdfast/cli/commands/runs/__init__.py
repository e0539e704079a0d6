"""Starting runs, watching them, and looking at what came of them."""
