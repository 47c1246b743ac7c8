-- What all scripts of the fair lock begin with.
-- KEYS[1] lock, KEYS[2] queue, KEYS[3] deadlines of those in it
local repaired = 30000 -- ms that a waiter gets whose deadline was removed by a stranger

-- unchanged is the answer of a script that has written nothing.
local function unchanged(answer)
  redis.call('zrem', KEYS[3], '') -- changes nothing; see scripts.go
  return answer
end

-- purge takes dead waiters from the head of the queue and returns who is the head then.
local function purge()
  local head = redis.call('lindex', KEYS[2], 0)
  while head do
    local deadline = redis.call('zscore', KEYS[3], head)
    if not deadline then
      redis.call('zadd', KEYS[3], string.format('%.0f', now + repaired), head)
      break
    end
    if tonumber(deadline) > now then
      break
    end
    redis.call('zrem', KEYS[3], head)
    redis.call('lpop', KEYS[2])
    head = redis.call('lindex', KEYS[2], 0)
  end
  return head
end

