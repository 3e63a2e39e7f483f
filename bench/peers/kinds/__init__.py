"""One module a system: its worker side and its enqueue side, run by the interpreter of that system's environment."""
