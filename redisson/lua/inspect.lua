-- Looks at an object of any kind. It changes nothing.
-- KEYS[1] object   ARGV[1] queue of a fair lock, ARGV[2] its deadlines, ARGV[3] counter of fencing tokens, ARGV[4] what a suffix is
-- added to, ARGV[5] mark of a semaphore that was made here, ARGV[6] and so on: channels, last ARGV publish or spublish
-- Answers {time to live in ms, server's time in ms, holders, waiters, permits to add, listeners of each channel, {what the key has:
-- 'none', 'hash', 'string' or 'other', list of what each holder has, list of waiters and deadlines, number, token, 'taken' for a semaphore
-- with permits that end}}. Both lists are cut.
local most = 1000
local clock = redis.call('time')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local key, taken = KEYS[1], ARGV[4] .. ':timeout'
local sort = redis.call('type', key).ok
local answer = {redis.call('pttl', key), now, 0, 0, 0}
local detail = {'other', {}, {}, '', '', ''}

-- lease is how long a reader has the lock, by its key for each hold.
local function lease(holder, count)
  local left = -2
  for n = 1, math.min(tonumber(count) or 1, 16) do
    left = math.max(left, redis.call('pttl', ARGV[4] .. ':' .. holder .. ':rwlock_timeout:' .. n))
  end
  return left
end

local kinds = {}

function kinds.none() detail[1] = sort end

function kinds.hash()
  if not seems(key) then
    return
  end
  answer[3] = redis.call('hlen', key)
  local fields = answer[3] <= most and redis.call('hgetall', key) or redis.call('hscan', key, 0, 'count', most)[2]
  local mode = redis.call('hget', key, 'mode')
  if mode then -- which may have been cut off
    detail[2][1] = {'mode', mode, 0}
  end
  for i = 1, #fields, 2 do
    local reads = mode and holds(fields[i]) and string.sub(fields[i], -6) ~= ':write'
    if fields[i] ~= 'mode' then
      table.insert(detail[2], {fields[i], fields[i + 1], reads and lease(fields[i], fields[i + 1]) or answer[1]})
    end
  end
  detail[1] = sort
end

function kinds.string()
  if redis.call('strlen', key) > 20 then
    return
  end
  detail[1], detail[4] = sort, redis.call('get', key)
  if redis.call('type', taken).ok ~= 'zset' then
    detail[6] = redis.call('exists', ARGV[5]) == 1 and 'taken' or ''
    return
  end
  detail[6] = 'taken'
  answer[3], answer[5] = redis.call('zcount', taken, '(' .. now, '+inf'), redis.call('zcount', taken, '-inf', now)
  local permits = redis.call('zrangebyscore', taken, '(' .. now, '+inf', 'withscores', 'limit', 0, most)
  for i = 1, #permits, 2 do
    table.insert(detail[2], {permits[i], '1', math.min(permits[i + 1] - now, 2 ^ 52)})
  end
end

if kinds[sort] then
  kinds[sort]()
end
if redis.call('type', ARGV[1]).ok == 'list' then
  answer[4] = redis.call('llen', ARGV[1])
  local dated = redis.call('type', ARGV[2]).ok == 'zset'
  for _, waiter in ipairs(redis.call('lrange', ARGV[1], 0, most - 1)) do
    table.insert(detail[3], {waiter, dated and redis.call('zscore', ARGV[2], waiter) or ''})
  end
end
if redis.call('type', ARGV[3]).ok == 'string' and redis.call('strlen', ARGV[3]) <= 20 then
  detail[5] = redis.call('get', ARGV[3])
end
for i = 6, #ARGV - 1 do
  local heard = redis.call('pubsub', ARGV[#ARGV] == 'spublish' and 'shardnumsub' or 'numsub', ARGV[i])
  table.insert(answer, heard[2])
end
table.insert(answer, detail)
return answer
