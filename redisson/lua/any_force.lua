-- Frees a lock of any kind whoever holds it, and notifies waiters as the script of its kind does.
-- KEYS[1] lock, KEYS[2] queue, KEYS[3] deadlines of those in it, KEYS[4] wake list or nothing   ARGV[1] channel of a lock, ARGV[2] channel of a
-- read/write lock, then the only holders from whom to free it, if there are any, then the receipt
-- Answers {1, those who held it} when there was a lock, {0, {}} when there was nothing, {-1, {}} when it is something else, and {-2, {}}
-- when somebody else holds it.
if redis.call('exists', KEYS[1]) == 0 then
  return done(0, {})
end
if redis.call('type', KEYS[1]).ok ~= 'hash' or not seems(KEYS[1]) then
  return done(-1, {})
end
local mode, held, only = nil, false, {}
for i = 3, #ARGV - 4 do
  only[ARGV[i]] = true
end
local fields = redis.call('hgetall', KEYS[1])
for i = 1, #fields, 2 do
  if fields[i] == 'mode' and (fields[i + 1] == 'read' or fields[i + 1] == 'write') then
    mode = fields[i + 1]
  elseif holds(fields[i]) and tonumber(fields[i + 1]) then
    held = true
    if next(only) and not only[fields[i]:gsub(':write$', '')] then
      return done(-2, {})
    end
  else
    return done(-1, {})
  end
end
if not held then
  return done(-1, {})
end
local told, head = holders(), not mode and purge()
redis.call('del', KEYS[1])
if mode or head then
  redis.call(ARGV[#ARGV], mode and ARGV[2] or ARGV[1] .. ':' .. head, mode == 'write' and '1' or '0')
else
  announce(KEYS[4], ARGV[#ARGV], ARGV[1], false, true)
end
return done(1, told)
