"""One module a command, in the room of its panel of `--help`."""
