-- Sets the hold count of a holder that has the lock, and makes its lease at least so long: for re-entries, for releases of
-- a part, for renewals, and for locks that pass on.
-- Safe to repeat, at any time: it makes no holder and shortens no lease.
-- KEYS[1] lock, KEYS[2] fencing token or nothing   ARGV[1] holder, ARGV[2] lease in ms, ARGV[3] count; with a token, ARGV[4] how
-- long it is kept after the lease in ms, 0 for ever, ARGV[5] '1' to count it up
-- Answers the lease left in ms when done, with a token {1, lease left in ms, token or 0}; {0} when this holder does not have the lock.
local call, key, holder = redis.call, KEYS[1], ARGV[1]
local has = call('hget', key, holder)
if not has then
  call('hdel', key, '') -- changes nothing; see scripts.go
  return {0}
end
local token = ARGV[5] == '1' and count() or 0
if type(token) == 'table' then
  return token
end
if has ~= ARGV[3] then
  call('hset', key, holder, ARGV[3])
end
return last(call('pttl', key), ARGV[2], token, ARGV[4])
