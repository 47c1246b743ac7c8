-- Sets the counts of a holder of a read/write lock, and makes its lease at least so long: for re-entries, for releases of a
-- part, and for renewals. A writer that goes on reading lets readers in, without a message.
-- Safe to repeat, at any time: it makes no holder. A writer is alone and may have any counts; without one there must be a
-- reader to go on. It shortens a lease only if it is asked to cut it, as Redisson does when a part of the writing ends.
-- KEYS[1] lock   ARGV[1] holder, ARGV[2] lease in ms, ARGV[3] reads, ARGV[4] writes, ARGV[5] the lease of a new write in ms,
-- which is added to what is left, 'cut' if the lease is to be no longer, or nothing, ARGV[6] the holder's timeout key
-- Answers {1, lease left in ms, 0} when done, {0} when this holder does not have the lock.
local writer = ARGV[1] .. ':write'
local writes = redis.call('hget', KEYS[1], writer)
if not writes and (ARGV[4] ~= '0' or redis.call('hexists', KEYS[1], ARGV[1]) == 0) then
  redis.call('hdel', KEYS[1], '') -- changes nothing; see scripts.go
  return {0}
end
local reading = redis.call('pttl', ARGV[6]) -- fails before anything has changed if this slot of a cluster is on the move
if reading == -2 and redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
  redis.call('exists', KEYS[1], ARGV[6]) -- so does this, at the new master
end
local lease, left = tonumber(ARGV[2]), redis.call('pttl', KEYS[1])
local whole = lease
if ARGV[4] == '0' then
  if writes then
    redis.call('hdel', KEYS[1], writer)
    redis.call('hset', KEYS[1], 'mode', 'read')
  end
elseif writes ~= ARGV[4] then
  redis.call('hset', KEYS[1], writer, ARGV[4])
  if ARGV[5] == 'cut' then
    left, reading = 0, 0
  elseif ARGV[5] ~= '' then
    whole = math.max(lease, ARGV[5] + math.max(left, 0))
  end
end
left = extend(left, whole)
if ARGV[3] == '0' then
  redis.call('hdel', KEYS[1], ARGV[1])
  redis.call('del', ARGV[6])
  return {1, left, 0}
end
redis.call('hset', KEYS[1], ARGV[1], ARGV[3])
if writes then -- what was answered to the writer stays true when it is only a reader
  lease = math.max(lease, left)
end
if reading < lease then
  redis.call('set', ARGV[6], '1', 'px', string.format('%.0f', lease))
  reading = lease
end
return {1, math.min(left, reading), 0}
