-- Looks at an object of any kind. It changes nothing.
-- KEYS[1] the object   ARGV[1] and ARGV[2] queue of a fair lock and its deadlines, ARGV[3] counter of fencing tokens, ARGV[4] mark of a
-- semaphore that was made here, ARGV[5] what its other names begin with, ARGV[6] to ARGV[9] channels of a lock, a read/write lock, a semaphore
-- and a latch, ARGV[10] wake list, last ARGV publish or spublish
-- Answers {1, {time to live in ms, holders, waiters, permits to add, listeners of each of the channels, what the key has: 'none', 'hash',
-- 'string' or 'other', list of what each holder has, list of waiters and deadlines, number, token, 'taken' for a semaphore with permits that
-- end}}. The lists are cut.
local call, key, most = redis.call, KEYS[1], 1000 -- of a list
local leases = 2000 -- of readers that are looked at, at most
local sort = call('type', key).ok
local o = {sort = 'other', holders = 0, waiting = 0, free = 0, fields = {}, queue = {}, number = '', token = '', taken = ''}
local heard = {0, 0, 0, 0}

-- lease is how long a reader has the lock, by its key for each hold.
local function lease(holder, count)
  local left = -2
  for n = 1, math.min(tonumber(count) or 1, 16) do
    left = math.max(left, call('pttl', ARGV[5] .. ':' .. holder .. ':rwlock_timeout:' .. n))
    leases = leases - 1
  end
  return left
end

-- listeners counts those of the channels from one to another.
local function listeners(first, last)
  local found = call('pubsub', ARGV[#ARGV] == 'spublish' and 'shardnumsub' or 'numsub', unpack(ARGV, 5 + first, 5 + last))
  for i = first, last do
    heard[i] = found[2 * (i - first + 1)]
  end
end

local kinds = {}

function kinds.none()
  o.sort = 'none'
  listeners(1, 4)
end

function kinds.hash(ttl)
  if not seems(key) then
    return
  end
  o.sort, o.holders = 'hash', call('hlen', key)
  local mode = call('hget', key, 'mode')
  local fields = o.holders <= most and call('hgetall', key) or call('hscan', key, 0, 'count', most)[2]
  if mode then -- which may have been cut off
    o.fields[1] = {'mode', mode, 0}
  end
  for i = 1, #fields, 2 do
    if fields[i] ~= 'mode' and leases > 0 then
      local reads = mode and holds(fields[i]) and string.sub(fields[i], -6) ~= ':write'
      table.insert(o.fields, {fields[i], fields[i + 1], reads and lease(fields[i], fields[i + 1]) or ttl})
    end
  end
  listeners(1, 2)
end

function kinds.string()
  if call('strlen', key) > 20 then
    return
  end
  o.sort, o.number = 'string', call('get', key)
  listeners(3, 4)
  local taken = ARGV[5] .. ':timeout'
  if call('type', taken).ok ~= 'zset' then
    o.taken = call('exists', ARGV[4]) == 1 and 'taken' or ''
    return
  end
  o.taken, o.holders, o.free = 'taken', call('zcount', taken, '(' .. now, '+inf'), call('zcount', taken, '-inf', now)
  local permits = call('zrangebyscore', taken, '(' .. now, '+inf', 'withscores', 'limit', 0, most)
  for i = 1, #permits, 2 do
    table.insert(o.fields, {permits[i], '1', math.min(permits[i + 1] - now, 2 ^ 52)})
  end
end

local ttl = call('pttl', key)
if kinds[sort] then
  kinds[sort](ttl)
end

-- The first in the queue of a fair lock mostly have the first deadlines.
if call('type', ARGV[1]).ok == 'list' then
  o.waiting = call('llen', ARGV[1])
  local dated, ends = call('type', ARGV[2]).ok == 'zset', {}
  local first = dated and call('zrangebyscore', ARGV[2], '-inf', '+inf', 'withscores', 'limit', 0, most) or {}
  for i = 1, #first, 2 do
    ends[first[i]] = first[i + 1]
  end
  for _, waiter in ipairs(call('lrange', ARGV[1], 0, most - 1)) do
    local other = not ends[waiter] and #first == 2 * most and call('zscore', ARGV[2], waiter)
    table.insert(o.queue, {waiter, ends[waiter] or other or ''})
  end
end

-- In the wake list may be some who hear nothing any more. Who asks may have no right to it.
if o.waiting == 0 and redis.pcall('type', ARGV[10]).ok == 'zset' then
  local all, channels = call('zrangebyscore', ARGV[10], '(0', '+inf', 'limit', 0, most), {}
  for i, member in ipairs(all) do
    channels[i] = ARGV[6] .. ':' .. (string.match(member, '(.*):') or member)
  end
  local found = #all > 0 and call('pubsub', ARGV[#ARGV] == 'spublish' and 'shardnumsub' or 'numsub', unpack(channels)) or {}
  for i, member in ipairs(all) do
    if found[2 * i] > 0 or ARGV[#ARGV] == 'PUBLISH' then
      table.insert(o.queue, {member, ''})
      heard[1] = heard[1] + found[2 * i]
    end
  end
  o.waiting = call('zcount', ARGV[10], '(0', '+inf') - #all + #o.queue
end
if call('type', ARGV[3]).ok == 'string' and call('strlen', ARGV[3]) <= 20 then
  o.token = call('get', ARGV[3])
end
return {1, {ttl, o.holders, o.waiting, o.free, heard[1], heard[2], heard[3], heard[4], o.sort, o.fields, o.queue, o.number, o.token, o.taken}}
