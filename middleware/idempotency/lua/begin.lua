-- Begins a record where there is none, or looks at the one that is there.
-- Safe to repeat: an owner that has begun it finds its own.
-- KEYS[1] record   ARGV[1] owner, or nothing to look only, ARGV[2] print, ARGV[3] time to live in ms
-- Answers owner, print and answer of the record; each is empty where there is none.
local found = redis.call('hmget', KEYS[1], 'owner', 'print', 'answer')
if found[1] or ARGV[1] == '' then
  return {found[1] or '', found[2] or '', found[3] or ''}
end
redis.call('hset', KEYS[1], 'owner', ARGV[1], 'print', ARGV[2])
redis.call('pexpire', KEYS[1], ARGV[3])
return {ARGV[1], ARGV[2], ''}
