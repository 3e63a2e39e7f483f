-- Purpose: show that scripts run on this server and may write.
-- KEYS: the queue's base key.
-- ARGV: settings.
-- Returns: state: open, rebuild, or format (a newer release made the keys).
-- Keeps: changes nothing but the epoch and the clock.
finish()
return notice()
