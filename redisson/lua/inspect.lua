-- Looks at objects of any kind: at as many of a list as do not take long, and at one at least. It changes nothing.
-- KEYS[1] any of the server's; of one object, its key
-- ARGV[1] to ARGV[8] what the names begin with of a fair lock's queue, of its deadlines, of the counter of fencing tokens, of the mark of a
-- semaphore that was made here, and of the channels of a lock, a read/write lock, a semaphore and a latch; then of each object its key, and
-- what its other names have behind that; last ARGV publish or spublish
-- Answers {1, list of objects}: false for one that must be looked at by itself, and otherwise {time to live in ms, holders, waiters,
-- permits to add, listeners of each of the channels, what the key has: 'none', 'hash', 'string' or 'other', list of what each holder
-- has, list of waiters and deadlines, number, token, 'taken' for a semaphore with permits that end}. The lists are cut.
local QUEUE, DEADLINES, TOKEN, MARK, LOCK, RW, PERMITS, LATCH, FIRST = 1, 2, 3, 4, 5, 6, 7, 8, 9
local most = 1000 -- of a list
local work = 0 -- commands, and parts of lists: each takes between one and two microseconds
local enough, tooMuch = 1000, 3000
local objects, later = {}, {}

local function ask(...)
  work = work + 1
  return redis.call(...)
end

-- part counts a part of the work, and puts an object off that has too much of it, unless it is the first.
local function part(size)
  size = math.min(size, most)
  if #objects > 0 and work + size > enough then
    error(later)
  end
  work = work + size
end

-- lease is how long a reader has the lock, by its key for each hold.
local function lease(base, holder, count)
  local left = -2
  for n = 1, math.min(tonumber(count) or 1, 16) do
    left = math.max(left, ask('pttl', base .. ':' .. holder .. ':rwlock_timeout:' .. n))
  end
  return left
end

local kinds = {}

function kinds.none(o) o.sort = 'none' end

function kinds.hash(o, key, base)
  work = work + 1
  if not seems(key) then
    return
  end
  o.holders = ask('hlen', key)
  part(o.holders)
  local mode = ask('hget', key, 'mode')
  local fields = o.holders <= most and ask('hgetall', key) or ask('hscan', key, 0, 'count', most)[2]
  if mode then -- which may have been cut off
    o.fields[1] = {'mode', mode, 0}
  end
  for i = 1, #fields, 2 do
    if fields[i] ~= 'mode' and work < tooMuch then
      local reads = mode and holds(fields[i]) and string.sub(fields[i], -6) ~= ':write'
      table.insert(o.fields, {fields[i], fields[i + 1], reads and lease(base, fields[i], fields[i + 1]) or o.ttl})
    end
  end
  o.sort = 'hash'
end

function kinds.string(o, key, base)
  if ask('strlen', key) > 20 then
    return
  end
  o.sort, o.number = 'string', ask('get', key)
  local taken = base .. ':timeout'
  if ask('type', taken).ok ~= 'zset' then
    o.taken = ask('exists', ARGV[MARK] .. base) == 1 and 'taken' or ''
    return
  end
  o.taken, o.holders, o.free = 'taken', ask('zcount', taken, '(' .. now, '+inf'), ask('zcount', taken, '-inf', now)
  part(o.holders)
  local permits = ask('zrangebyscore', taken, '(' .. now, '+inf', 'withscores', 'limit', 0, most)
  for i = 1, #permits, 2 do
    table.insert(o.fields, {permits[i], '1', math.min(permits[i + 1] - now, 2 ^ 52)})
  end
end

-- queue lists who waits for a fair lock. The first in it mostly have the first deadlines.
local function queue(o, base)
  local list, deadlines = ARGV[QUEUE] .. base, ARGV[DEADLINES] .. base
  if ask('type', list).ok ~= 'list' then
    return
  end
  o.waiting = ask('llen', list)
  part(o.waiting)
  local dated, ends = ask('type', deadlines).ok == 'zset', {}
  local first = dated and ask('zrangebyscore', deadlines, '-inf', '+inf', 'withscores', 'limit', 0, most) or {}
  for i = 1, #first, 2 do
    ends[first[i]] = first[i + 1]
  end
  for _, waiter in ipairs(ask('lrange', list, 0, most - 1)) do
    local other = not ends[waiter] and #first == 2 * most and ask('zscore', deadlines, waiter)
    table.insert(o.queue, {waiter, ends[waiter] or other or ''})
  end
end

local function look(key, base)
  local sort = ask('type', key).ok
  local o = {ttl = ask('pttl', key), holders = 0, waiting = 0, free = 0, sort = 'other', fields = {}, queue = {}, number = '', token = '', taken = ''}
  if kinds[sort] then
    kinds[sort](o, key, base)
  end
  queue(o, base)
  local token = ARGV[TOKEN] .. base
  if ask('type', token).ok == 'string' and ask('strlen', token) <= 20 then
    o.token = ask('get', token)
  end
  return {o.ttl, o.holders, o.waiting, o.free, 0, 0, 0, 0, o.sort, o.fields, o.queue, o.number, o.token, o.taken}
end

local last = #ARGV - 1
for i = FIRST, last, 2 do
  if work > enough then
    break
  end
  local ok, o = true, nil
  if last == FIRST + 1 then -- its error is the answer
    o = look(ARGV[i], ARGV[i + 1])
  else
    ok, o = pcall(look, ARGV[i], ARGV[i + 1])
  end
  if o == later then
    break
  end
  table.insert(objects, ok and o)
end

-- Who listens to what is asked once for all.
local channels, places = {}, {}
for i, o in ipairs(objects) do
  for c = LOCK, LATCH do
    local sort = o and o[9]
    if sort == 'none' or sort == 'hash' and c <= RW or sort == 'string' and c > RW then
      local at = FIRST + 2 * (i - 1)
      table.insert(channels, ARGV[c] .. (c == LATCH and ARGV[at] .. '}' or ARGV[at + 1]))
      table.insert(places, {o, c})
    end
  end
end
if #channels > 0 then
  local heard = redis.call('pubsub', ARGV[#ARGV] == 'spublish' and 'shardnumsub' or 'numsub', unpack(channels))
  for i, place in ipairs(places) do
    place[1][place[2]] = heard[2 * i]
  end
end
return {1, objects}
