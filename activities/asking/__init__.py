"""One paid call, within its reservation: from the journal to its answer and back."""
