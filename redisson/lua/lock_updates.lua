-- Does for many locks without tokens what lock_update does for one: the watchdog's renewals, of which a client can have
-- very many. To begin a script takes Redis as long as to renew a lock.
-- Safe to repeat, at any time, as lock_update is. An error leaves some locks updated and says nothing of any.
-- KEYS[i] lock   ARGV[3i-2] holder, ARGV[3i-1] lease in ms, ARGV[3i] count
-- Answers for each lock the lease left in ms when done, 0 when this holder does not have it, or something else is at the key.
local call, pcall, answers = redis.call, redis.pcall, {}
for i, key in ipairs(KEYS) do
  local holder, ms, count = ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
  local has = pcall('hget', key, holder)
  if not has or type(has) == 'table' then
    answers[i] = 0
  else
    if has ~= count then
      call('hset', key, holder, count)
    end
    local left, lease = call('pttl', key), tonumber(ms)
    if left < lease then
      call('pexpire', key, ms)
      left = lease
    end
    answers[i] = left
  end
end
return answers
