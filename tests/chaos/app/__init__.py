"""The application whose jobs the chaos runs."""
