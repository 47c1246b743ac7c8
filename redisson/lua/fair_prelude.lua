-- What all scripts of the fair lock begin with.
-- KEYS[1] lock, KEYS[2] queue, KEYS[3] deadlines of those in it
local repaired = 30000 -- ms that a waiter gets whose deadline was removed by a stranger

-- unchanged is the answer of a script that has written nothing.
local function unchanged(answer)
  redis.call('zrem', KEYS[3], '') -- changes nothing; see scripts.go
  return answer
end

-- whole reports whether each waiter has a deadline, unless a stranger has taken as many from one as from the other: then nobody has to look
-- through the queue, which can be long.
local function whole() return redis.call('llen', KEYS[2]) == redis.call('zcard', KEYS[3]) end

-- advance has waiters wait so much less.
local function advance(waiters, by)
  for _, waiter in ipairs(waiters) do
    redis.call('zincrby', KEYS[3], -by, waiter)
  end
end

-- drop takes those waiters out of the queue who are over. The others keep what they have on top of the deadline ahead of theirs, but for that:
-- before is the deadline of who was the head.
local function drop(over, before)
  local last = now
  for _, waiter in ipairs(redis.call('lrange', KEYS[2], 0, -1)) do
    local deadline = tonumber(redis.call('zscore', KEYS[3], waiter) or before)
    if over(waiter) then
      redis.call('zrem', KEYS[3], waiter)
      redis.call('lrem', KEYS[2], 1, waiter)
    else
      last = math.min(deadline, last + math.max(0, deadline - before))
      if last < deadline then
        redis.call('zadd', KEYS[3], string.format('%.0f', last), waiter)
      end
    end
    before = deadline
  end
end

-- purge takes dead waiters from the head of the queue and returns who is the head then. With one of ours all of its client go: they
-- would come again in time if it was alive.
local function purge()
  while true do
    local head = redis.call('lindex', KEYS[2], 0)
    local deadline = head and redis.call('zscore', KEYS[3], head)
    if head and not deadline then
      redis.call('zadd', KEYS[3], string.format('%.0f', now + repaired), head)
    end
    if not deadline or tonumber(deadline) > now then
      return head
    end
    redis.call('zrem', KEYS[3], head)
    redis.call('lpop', KEYS[2])
    local client = string.match(head, '^(.+:)[4-9]' .. string.rep('%d', 18) .. '$')
    if client then
      drop(function(waiter) return string.sub(waiter, 1, #client) == client end, tonumber(deadline))
    end
  end
end

