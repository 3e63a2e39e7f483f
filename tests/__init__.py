"""Tests of groupjobs and of its demo project; servers are real and private to each test process."""
