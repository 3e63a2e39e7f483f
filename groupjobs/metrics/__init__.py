"""Metrics for Prometheus, as the extra `prometheus`. Labels are queue, job and status or outcome; never a group."""
