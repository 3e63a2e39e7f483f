"""The demo: real servers, a real upload, and a verdict about every leg of the file."""
