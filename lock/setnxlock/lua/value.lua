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
