"""What a review is about: kinds of files, what the repository takes out, what is known already."""
