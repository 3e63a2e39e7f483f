"""The same work on other queues, each in an environment of its own: `python -m bench.peers --help`."""
