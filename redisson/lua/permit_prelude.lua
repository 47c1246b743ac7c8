-- What the scripts of the lock kind Permit begin with: permits whose time is over become free.
-- KEYS for each level its number of free permits, its taken permits with the end of each, and the mark of a semaphore that was made here; then as the
-- script says
-- ARGV[1] id of the permit, 16 bytes, ARGV[2] how many levels, ARGV[3] to ARGV[5] as the script says; for each level its channel and how many permits there
-- are if the semaphore is made here; then as the script says, last ARGV publish or spublish
local levels, gone = {}, false -- and whether one of them does not have the permit
for i = 1, tonumber(ARGV[2]) do
  local level = {free = KEYS[3 * i - 2], taken = KEYS[3 * i - 1], mark = KEYS[3 * i], channel = ARGV[4 + 2 * i], limit = ARGV[5 + 2 * i]}
  local over = redis.call('zremrangebyscore', level.taken, '-inf', now)
  if over > 0 and redis.call('exists', level.free) == 1 then
    local free = redis.call('incrby', level.free, over)
    if free > 0 then
      redis.call(ARGV[#ARGV], level.channel, free)
    end
  end
  levels[i], level.held = level, redis.call('zscore', level.taken, ARGV[1])
  gone = gone or not level.held
end

-- count is how many permits of a level are free, or the answer that it has none. A semaphore that was made here has as many as the call says.
local function count(level)
  local free = redis.pcall('get', level.free)
  if type(free) == 'table' then
    local mode = redis.call('hget', level.free, 'mode')
    return nil, {-1, mode == 'read' and 2 or mode and 3 or 0}
  end
  level.made = not free or redis.call('exists', level.mark) == 1
  return level.made and level.limit - redis.call('zcard', level.taken) or assert(tonumber(free), 'value is not a number')
end

-- keep makes a permit last at least as long as the lease, and returns how long it lasts. A semaphore that was made here lasts as long as its
-- permits.
local function keep(level, id, lease)
  local left = math.max((level.held or 0) - now, lease)
  redis.call('zadd', level.taken, string.format('%.0f', now + left), id)
  local ttl = redis.call('pttl', level.free)
  if redis.call('exists', level.mark) == 1 then
    ttl = math.max(ttl, redis.call('zrange', level.taken, -1, -1, 'withscores')[2] - now)
    redis.call('pexpire', level.free, string.format('%.0f', ttl))
    redis.call('pexpire', level.mark, string.format('%.0f', ttl))
  end
  if ttl > 0 then
    redis.call('pexpire', level.taken, string.format('%.0f', ttl))
  elseif redis.call('pttl', level.taken) > 0 then -- of the semaphore's that has ended: with it, permits would go that nobody counts
    redis.call('pexpire', level.taken, 922337203685477)
  end
  return math.min(left, 2 ^ 52)
end

