"""How soon groups are served again after a death, and what idling, waiting and healing cost."""
