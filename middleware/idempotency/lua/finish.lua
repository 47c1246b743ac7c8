-- Stores the answer in the record of its owner, or removes a record that has none.
-- Safe to repeat, and late: what another owner has begun stays as it is.
-- KEYS[1] record   ARGV[1] owner, ARGV[2] answer, or nothing to remove the record, ARGV[3] time to live in ms
-- Answers 1 if there is a record of this owner, and otherwise 0.
local found = redis.call('hmget', KEYS[1], 'owner', 'answer')
if found[1] ~= ARGV[1] then
  return 0
end
if ARGV[2] ~= '' then
  redis.call('hset', KEYS[1], 'answer', ARGV[2])
  redis.call('pexpire', KEYS[1], ARGV[3])
elseif not found[2] then
  redis.call('del', KEYS[1])
end
return 1
