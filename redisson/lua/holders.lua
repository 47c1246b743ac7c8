-- Goes before the scripts that free a lock by force.
-- KEYS[1] lock

-- holders lists the ids of those who have the lock, 1,000 at most, to be told. A key of another type has none, and who may not know
-- who they are frees the lock all the same.
local function holders()
  local fields, ids = redis.pcall('hkeys', KEYS[1]), {}
  for i = 1, math.min(#fields, 1000) do
    ids[i] = fields[i]
  end
  return ids
end

