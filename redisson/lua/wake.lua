-- Goes before the scripts that wake who waits for a lock.
-- The wake list is a sorted set beside the lock, of the clients of this package that wait for it: a member for each time that a client has
-- to, which is the end of its channel, a colon and a number, with the time in µs at which it came. Before them stand two notes: '' with the
-- negative of the time at which somebody was told that it is its turn, '-' with the negative of how many releases may yet stay silent on
-- Redisson's channel. The list is a hint. Who may not touch it has none.
local grace = 25000 -- µs for which nobody overtakes who was told that it is its turn
local many = 64 -- of those who wait somebody looks soon without being told

-- try is the answer to a command that may be refused; then it is false. One that the server does not know fails: it was told to publish in shards,
-- and has none.
local function try(...)
  local said = redis.pcall(...)
  local failed = type(said) == 'table' and said.err
  return not failed and said or failed and string.find(failed, '[Uu]nknown.-command') and redis.call(...)
end

local function micros()
  local clock = redis.call('time')
  return clock[1] * 1000000 + clock[2]
end

-- front is two of the list, from a place on, or the last one for a place beyond, and whether there is anything in it.
local function front(wake, place)
  local found, first, place = wake and try('zrange', wake, 0, (place or 0) + 3) or {}, {}, place or 0
  for _, member in ipairs(found) do
    if member ~= '' and member ~= '-' then
      first[#first + 1] = member
    end
  end
  return first[place + 1] or first[#first], first[place + 2], #found > 0
end

-- wakes reports whether those who have a lock or the permits of a semaphore tell those in the list of their release: by their numbers, and by the
-- letters in the ids of permits, of which 64 are looked at.
local function wakes(key)
  local holders = try('hkeys', key) or try('zrange', key, 0, 63) or {}
  for _, holder in ipairs(holders) do
    if not string.find(holder, ':[23]' .. string.rep('%d', 18) .. '$') and (#holder ~= 16 or string.sub(holder, 13, 14) ~= 'lk') then
      return false
    end
  end
  return #holders > 0
end

-- say tells a member something on its channel, and returns how many heard it: '1' that it is its turn, '2' to look in a moment. In a cluster
-- with classic channels, where PUBLISH is written large, that number counts for nothing.
local function say(publish, channel, member, word)
  local heard = tonumber(try(publish, channel .. ':' .. string.match(member, '(.*):'), word) or 0)
  return publish == 'PUBLISH' and 1 or heard
end

-- announce wakes the first that hears it, of a lock that is free now, and tells the next one to look in a moment, unless many wait: the first
-- stays in the list until it has the lock. Of a semaphore with so many free permits, it is that many who are told, and all but the last were, by the
-- releases before. Redisson's channel is told as well, in a way that wakes Redisson and tells this package that
-- somebody was told: '00', or a number that begins with 0, unless the lock was freed by hand. Where many are in line, some releases are silent there,
-- or those of Redisson would be served more often than others. Of a lock that an heir keeps, the first learns how long.
-- It returns how many were told in all, as far as is known. Nothing here fails, as the lock is gone.
local function announce(wake, publish, channel, kept, forced, free)
  local place, plain = (free or 1) - 1, free or '0'
  local first, second, noted = front(wake, place)
  while first and say(publish, channel, first, '1') == 0 do
    if try('zrem', wake, first) ~= 1 then
      return tonumber(try(publish, channel, plain) or 0)
    end
    first, second, noted = front(wake, place)
  end
  if not first or kept then
    if noted and not first then
      try('del', wake)
    end
    return tonumber(try(publish, channel, plain) or 0)
  end
  try('zadd', wake, string.format('%.0f', -micros()), '')
  local waiting = second and try('zcount', wake, '(0', '+inf') or 0
  local both = waiting >= many or second and say(publish, channel, second, '2') > 0
  local silent = both and tonumber(try('zscore', wake, '-') or 0)
  if both and silent < 0 and not forced then
    try('zadd', wake, silent + 1, '-')
    return 1
  end
  local others = tonumber(try(publish, channel, forced and plain or '0' .. plain) or 0)
  if both and others > 0 and waiting >= 4 and not forced then
    try('zadd', wake, -math.min(16, math.ceil(waiting / others)), '-')
  end
  return 1 + others
end

-- pass takes a member out of the list that waits no more, and wakes others of what is free. If those who have it will tell nobody of the list,
-- those who stand in front look now, and hear Redisson's channel then. A list with notes alone goes: a release of Redisson's would leave it.
local function pass(wake, member, free, key, publish, channel)
  redis.call('zrem', wake, member)
  local first, second = front(wake)
  if free > 0 then
    announce(wake, publish, channel, false, false, key ~= KEYS[1] and free)
  elseif not first then
    try('del', wake)
  elseif not wakes(key) then
    for _, member in ipairs({first, second}) do
      say(publish, channel, member, '2')
    end
  end
end
