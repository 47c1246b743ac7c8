-- Looks at an object of any kind. It changes nothing.
-- KEYS[1] the object   ARGV[1] and ARGV[2] queue of a fair lock and its deadlines, ARGV[3] counter of fencing tokens, ARGV[4] mark of a
-- semaphore that was made here, ARGV[5] what its other names begin with, ARGV[6] to ARGV[9] channels of a lock, a read/write lock, a semaphore
-- and a latch, ARGV[10] wake list, last ARGV publish or spublish
-- Answers {1, {time to live in ms, type as the package calls it, mode, list of holders with count and lease in ms, holders, list of waiters
-- with deadlines or 0, waiters, listeners, token, free permits}}. The lists are cut.
local call, key, most = redis.call, KEYS[1], 1000 -- of a list
local o = {type = 'other', mode = '', holders = {}, held = 0, queue = {}, waiting = 0, listeners = 0, permits = 0}

-- whole is a number as it can be answered. One that Lua can't count with is 2^53, or the negative of that.
local function whole(value) return math.max(-2 ^ 53, math.min(value, 2 ^ 53)) end

-- number reads a number. It returns nothing if there is none.
local function number(name)
  local text = call('type', name).ok == 'string' and call('strlen', name) <= 20 and call('get', name) or ''
  return string.find(text, '^%-?%d+$') and whole(tonumber(text))
end

-- listeners counts those of a channel.
local function listeners(channel)
  return call('pubsub', ARGV[#ARGV] == 'spublish' and 'shardnumsub' or 'numsub', channel)[2]
end

-- left is what is left of a time to live: 0 where there is no key.
local function left(name)
  local ms = call('pttl', name)
  return ms == -2 and 0 or ms
end

-- lease is how long a reader has the lock, by its keys for the first hold and the last.
local function lease(holder, count)
  local name = ARGV[5] .. ':' .. holder .. ':rwlock_timeout:'
  local first, last = left(name .. '1'), left(name .. count)
  return first < 0 and first or math.max(first, last)
end

local kinds = {}

function kinds.none()
  o.type = 'none'
  for i = 6, 9 do
    o.listeners = o.listeners + listeners(ARGV[i])
  end
end

function kinds.hash(ttl)
  if not seems(key) then
    return
  end
  local size, mode = call('hlen', key), call('hget', key, 'mode') -- which may be cut off
  local fields = size <= most and call('hgetall', key) or call('hscan', key, 0, 'count', most)[2]
  local holders, limits = {}, 0
  for i = 1, #fields, 2 do
    local field, count = fields[i], tonumber(fields[i + 1])
    if settings[field] then
      limits = limits + settings[field]
    elseif holds(field) and count then
      local reads = mode and string.sub(field, -6) ~= ':write'
      table.insert(holders, {field, whole(count), reads and lease(field, fields[i + 1]) or ttl})
    elseif field ~= 'mode' then
      return
    end
  end
  if limits == 3 and not mode and #holders == 0 then
    o.type = 'ratelimiter'
  elseif limits == 0 and #holders > 0 and (not mode or mode == 'read' or mode == 'write') then
    o.type, o.mode, o.holders, o.held = mode and 'readwrite' or 'lock', mode or '', holders, size - (mode and 1 or 0)
    o.listeners = listeners(ARGV[mode and 7 or 6])
  end
end

function kinds.string()
  local free = number(key)
  if not free then
    return
  end
  local taken, semaphore, latch = ARGV[5] .. ':timeout', listeners(ARGV[8]), listeners(ARGV[9])
  o.type, o.listeners = 'semaphore', semaphore
  if call('type', taken).ok == 'zset' then
    o.type, o.held, free = 'expirablesemaphore', call('zcount', taken, '(' .. now, '+inf'), free + call('zcount', taken, '-inf', now)
    local permits = call('zrangebyscore', taken, '(' .. now, '+inf', 'withscores', 'limit', 0, most)
    for i = 1, #permits, 2 do
      local ms = permits[i + 1] - now
      table.insert(o.holders, {permits[i], 1, ms < 2 ^ 42 and ms or -1}) -- what lasts longer has no end
    end
  elseif call('exists', ARGV[4]) == 1 then
    o.type = 'expirablesemaphore'
  elseif latch > 0 and semaphore == 0 then
    o.type, o.listeners = 'countdownlatch', latch
  end
  o.permits = whole(free)
end

local ttl, look = left(key), kinds[call('type', key).ok]
if look then
  look(ttl)
end

if call('type', ARGV[1]).ok == 'list' then
  o.waiting = call('llen', ARGV[1])
  local dated = call('type', ARGV[2]).ok == 'zset'
  for _, waiter in ipairs(call('lrange', ARGV[1], 0, most - 1)) do
    table.insert(o.queue, {waiter, whole(tonumber(dated and call('zscore', ARGV[2], waiter) or 0))})
  end
end

-- In the wake list may be some who hear nothing any more. Who asks may have no right to it.
if o.waiting == 0 and redis.pcall('type', ARGV[10]).ok == 'zset' then
  local all = call('zrangebyscore', ARGV[10], '(0', '+inf', 'limit', 0, most)
  for _, member in ipairs(all) do
    local own = ':' .. (string.match(member, '(.*):') or member)
    local heard = listeners(ARGV[6] .. own) + listeners(ARGV[8] .. own)
    if heard > 0 or ARGV[#ARGV] == 'PUBLISH' then
      table.insert(o.queue, {member, 0})
      o.listeners = o.listeners + heard
    end
  end
  o.waiting = call('zcount', ARGV[10], '(0', '+inf') - #all + #o.queue
end
if o.type == 'none' and o.waiting > 0 then
  o.type = 'lock'
end
return {1, {ttl, o.type, o.mode, o.holders, o.held, o.queue, o.waiting, o.listeners, number(ARGV[3]) or 0, o.permits}}
