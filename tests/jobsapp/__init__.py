"""The application whose jobs the tests run."""
