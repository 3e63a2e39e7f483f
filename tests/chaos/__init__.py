"""Chaos: real servers, a real fleet, a seeded schedule of faults, and a judge of what came of it."""
