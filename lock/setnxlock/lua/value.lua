-- Reads the value of a lock: false if there is none. If the key can't be read, the second result is what the script is to answer.
local function value()
  local v = redis.pcall('get', KEYS[1])
  if type(v) ~= 'table' then
    return v
  end
  if not string.find(v.err, 'WRONGTYPE', 1, true) then
    return nil, v
  end
  local kind = redis.pcall('type', KEYS[1])
  return nil, {-1, kind.ok or ''}
end

-- other answers that another value has the lock, or none. A demoted master says that of what it does not know, so it is asked to write
-- what changes nothing: a replica refuses.
local function other(has, answer)
  if has then
    redis.call('set', KEYS[1], '', 'nx')
  else
    redis.call('del', KEYS[1])
  end
  return answer
end
