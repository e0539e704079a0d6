"""Who works on a subtask: its own role, or the one that the plan names as its second."""
