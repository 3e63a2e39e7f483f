"""What the benchmarks run: the same nothing, as a grouped job and as a plain Celery task."""
