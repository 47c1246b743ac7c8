-- Frees a lock whoever holds it, and notifies waiters as the release of its kind does: of a fair lock the head of the queue, which stays. A
-- free lock stays silent.
-- KEYS[1] lock; of a fair lock KEYS[2] queue, KEYS[3] deadlines of those in it; last the wake list of a lock that may have one, or nothing
-- ARGV[1] channel of a lock, ARGV[2] channel of a read/write lock, ARGV[3] kind, or 'any' for a key that may hold something else, then the only
-- holders from whom to free it, if there are any, last the key of the receipt, the number of the request, the life of the receipt in ms, publish
-- or spublish
-- Safe to repeat: a request frees once, however often it is sent, so that a copy does not free the lock of whoever has it by then. Its
-- receipt, see receipt.lua, has those who held the lock, too, so that a copy answers what the first one did.
-- Answers {1, those who held it} when there was such a lock, {0, {}} when there was none, and of any kind {-1, {}} when it is something
-- else, and {-2, {}} when somebody else holds it.
local receipt, number, life, publish = ARGV[#ARGV - 3], ARGV[#ARGV - 2], ARGV[#ARGV - 1], ARGV[#ARGV]
local note = redis.pcall('get', receipt)
local seen, outcome, ids = string.match(type(note) == 'string' and note or '', '^(%d+) (-?%d+)(.*)$')
local kind, mode, only, told = ARGV[3], false, {}, {}
if seen and tonumber(seen) >= tonumber(number) then
  for id in string.gmatch(seen == number and ids or '', '%S+') do
    told[#told + 1] = id
  end
  return {seen == number and tonumber(outcome) or 0, told}
end

-- elsewhere says that the slot of a cluster is on the move, and that one of the masters has the lock and the other one the receipt: a second
-- receipt would keep the first from moving. Nothing else fails here for who may ask.
local elsewhere = type(redis.pcall('exists', KEYS[1], receipt)) == 'table'

-- done notes what came of the request and who held the lock, and is its answer. A user who may not write a receipt,
-- or whose Redis is full, frees the lock all the same.
local function done(outcome)
  if elsewhere then
    return {outcome, told}
  end
  local noted = redis.pcall('set', receipt, string.format('%s %.0f %s', number, outcome, table.concat(told, ' ')), 'px', life)
  return noted.err and string.find(noted.err, 'READONLY', 1, true) and noted or {outcome, told} -- see scripts.go
end

-- otherwise is what a key is if it holds no lock to be freed: as in the answers. It finds out the mode.
local function otherwise()
  if redis.call('exists', KEYS[1]) == 0 then
    return 0
  elseif kind == 'read' or kind == 'write' then
    mode = redis.call('hget', KEYS[1], 'mode')
    return mode ~= kind and 0
  elseif kind ~= 'any' then
    return nil
  elseif redis.call('type', KEYS[1]).ok ~= 'hash' or not seems(KEYS[1]) then
    return -1
  end
  local fields, nobody = redis.call('hgetall', KEYS[1]), -1
  for i = 1, #fields, 2 do
    local field, value = fields[i], fields[i + 1]
    if field == 'mode' and (value == 'read' or value == 'write') then
      mode = value
    elseif not holds(field) or not tonumber(value) then
      return -1
    elseif next(only) and not only[field:gsub(':write$', '')] then
      return -2
    else
      nobody = nil
    end
  end
  return nobody
end

for i = 4, #ARGV - 4 do
  only[ARGV[i]] = true
end
local other = otherwise()
if other then
  return done(other)
end

-- Those who have the lock are told, 1,000 at most. A key of another type has none, and who may not know who they are frees it all the same.
local fields = redis.pcall('hkeys', KEYS[1])
for i = 1, math.min(#fields, 1000) do
  if #fields[i] < 100 and not string.find(fields[i], '%s') then
    told[#told + 1] = fields[i]
  end
end
local head = KEYS[3] and not mode and purge()
redis.call('del', KEYS[1])
if mode or head then
  redis.call(publish, mode and ARGV[2] or ARGV[1] .. ':' .. head, mode == 'write' and '1' or '0')
elseif kind ~= 'fair' and kind ~= 'spin' then
  announce(KEYS[kind == 'any' and 4 or 2], publish, ARGV[1], false, true)
end
return done(1)
