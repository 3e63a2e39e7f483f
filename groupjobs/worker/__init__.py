"""The worker: what a Celery worker's main process does for groupjobs beside running its pool."""
