-- Goes before the scripts of a lock that may be fenced.
-- KEYS[2] fencing token or nothing
-- keep has the token live for so many ms on top of a lease, unless that is 0: then it lives as it does.
local function keep(ttl, lease)
  local life = lease + ttl
  if life > lease and redis.call('pttl', KEYS[2]) < life then
    redis.call('pexpire', KEYS[2], life)
  end
end
