-- Goes before the scripts of a lock that may be fenced, after lease.
-- KEYS[1] lock, KEYS[2] fencing token or nothing

-- count counts the token up. An error changes nothing, and is to be returned. That the key holds something else says nothing about
-- the lock, so it is not said as for the lock.
local function count()
  local token = redis.pcall('incr', KEYS[2])
  if type(token) == 'table' and string.find(token.err, 'WRONGTYPE') then
    return redis.error_reply('ERR the counter of fencing tokens is not a number')
  end
  return token
end

-- last has a lock that is left for so long live for the lease at least, and its token for ttl ms on top of that, unless that is 0: then it lives
-- as it does. It returns the answer of the script.
local function last(left, lease, token, ttl)
  left = extend(left, lease)
  if not KEYS[2] then
    return left
  end
  local life = left + ttl
  if life > left and redis.call('pttl', KEYS[2]) < life then
    redis.call('pexpire', KEYS[2], life)
  end
  return {1, left, token}
end
