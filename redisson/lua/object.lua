-- Goes before the scripts that find out what a key is.

local uuid = string.rep('%x', 8) .. string.rep('%-%x%x%x%x', 3) .. '%-' .. string.rep('%x', 12)
local settings = {rate = true, interval = true, type = true, keepAliveTime = true} -- of a rate limiter

-- holds reports whether a field of a hash can be the id of a holder.
local function holds(field)
  return #field < 256 and string.find(field, '^' .. uuid .. ':%d') ~= nil
end

-- seems reports whether a hash can be a lock or a rate limiter, by one of its fields: those of others may be many, and large.
local function seems(key)
  local field = redis.pcall('hrandfield', key)
  if type(field) == 'string' then
    return field == 'mode' or settings[field] or holds(field)
  end
  -- In doubt it is looked at by itself, unless the user may not.
  return type(field) == 'table' and not string.find(field.err, 'permission') and not string.find(field.err, "can't")
end
