"""Do one instruction for every item of an input, in chunks, within a slice of money. Pure."""
