"""The activities of a map: read its items, ask its rows, put its table together."""
