"""One paid call, within its reservation: from the journal to the journal, and what it brought."""
