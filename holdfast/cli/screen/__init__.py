"""What a terminal shows: streams, boards, previews and reports."""
