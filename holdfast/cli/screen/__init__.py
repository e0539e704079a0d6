"""Show streams, boards, previews and reports in a terminal."""
