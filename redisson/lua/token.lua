-- Goes before the scripts of a lock that may be fenced.
-- KEYS[2] fencing token or nothing

-- count counts the token up. An error changes nothing, and is to be returned. That the key holds something else says nothing about
-- the lock, so it is not said as for the lock.
local function count()
  local token = redis.pcall('incr', KEYS[2])
  if type(token) == 'table' and string.find(token.err, 'WRONGTYPE') then
    return redis.error_reply('ERR the counter of fencing tokens is not a number')
  end
  return token
end

-- keep has the token live for so many ms on top of a lease, unless that is 0: then it lives as it does.
local function keep(ttl, lease)
  local life = lease + ttl
  if life > lease and redis.call('pttl', KEYS[2]) < life then
    redis.call('pexpire', KEYS[2], life)
  end
end
