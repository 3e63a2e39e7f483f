"""The demo project: an aircraft logbook, served by groupjobs."""
