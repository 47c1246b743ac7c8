-- Goes before the scripts that find out what a key is.

local uuid = string.rep('%x', 8) .. string.rep('%-%x%x%x%x', 3) .. '%-' .. string.rep('%x', 12)
local settings = {rate = 1, interval = 1, type = 1, keepAliveTime = 0, latchkey = 0} -- of a rate limiter; 1 for those that it always has

-- holds reports whether a field of a hash can be the id of a holder.
local function holds(field)
  return #field < 256 and string.find(field, '^' .. uuid .. ':%d[^ ]*$') ~= nil
end

-- doubtful reports whether an error leaves open what a key is: then it is looked at by itself, unless the user may not.
local function doubtful(text) return not string.find(text, 'permission') and not string.find(text, "can't") end

-- seems reports whether a hash can be a lock or a rate limiter, by three of its fields: those of others may be many, and large.
local function seems(key)
  local some = redis.pcall('hrandfield', key, 3)
  if some.err then
    return doubtful(some.err)
  end
  for _, field in ipairs(some) do
    if field ~= 'mode' and not settings[field] and not holds(field) then
      return false
    end
  end
  return #some > 0
end
