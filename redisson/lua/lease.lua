-- Goes before the scripts that may make the lease of a lock longer.

-- extend has a lock that is left for so many ms live for the lease at least, and returns what is left of it then.
local function extend(left, lease)
  lease = tonumber(lease)
  if left >= lease then
    return left
  end
  redis.call('pexpire', KEYS[1], lease)
  return lease
end
