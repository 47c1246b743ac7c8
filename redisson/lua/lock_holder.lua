-- Says who holds a lock, if it is one alone.
-- KEYS[1] lock
-- Answers {1, {their id}}.
local ids = redis.call('hkeys', KEYS[1])
return {1, #ids == 1 and ids or {}}
