-- Goes before the scripts that free a lock by force.
-- KEYS[1] lock   last ARGV the key of the receipt, the number of the request, the life of the receipt in ms, publish or spublish
-- Safe to repeat: a request frees once, however often it is sent, so that a copy does not free the lock of whoever has it by then. Its
-- receipt, see receipt.lua, has those who held the lock, too, so that a copy answers what the first one did.
local receipt, number, life = ARGV[#ARGV - 3], ARGV[#ARGV - 2], ARGV[#ARGV - 1]
local note = redis.pcall('get', receipt)
local seen, outcome, told = string.match(type(note) == 'string' and note or '', '^(%d+) (-?%d+)(.*)$')
if seen and tonumber(seen) >= tonumber(number) then
  local ids = {}
  for id in string.gmatch(seen == number and told or '', '%S+') do
    ids[#ids + 1] = id
  end
  return {seen == number and tonumber(outcome) or 0, ids}
end

-- elsewhere says that the slot of a cluster is on the move, and that one of the masters has the lock and the other one the receipt: a second
-- receipt would keep the first from moving. Nothing else fails here for who may ask.
local elsewhere = type(redis.pcall('exists', KEYS[1], receipt)) == 'table'

-- done notes what came of the request and who held the lock, and is its answer. Who may not write a receipt, and whose Redis is full,
-- frees the lock all the same.
local function done(outcome, ids)
  if elsewhere then
    return {outcome, ids}
  end
  local noted = redis.pcall('set', receipt, string.format('%s %.0f %s', number, outcome, table.concat(ids, ' ')), 'px', life)
  return noted.err and string.find(noted.err, 'READONLY', 1, true) and noted or {outcome, ids} -- see scripts.go
end

-- holders lists the ids of those who have the lock, 1,000 at most, to be told. A key of another type has none, and who may not know
-- who they are frees the lock all the same.
local function holders()
  local fields, ids = redis.pcall('hkeys', KEYS[1]), {}
  for i = 1, math.min(#fields, 1000) do
    if #fields[i] < 100 and not string.find(fields[i], '%s') then
      ids[#ids + 1] = fields[i]
    end
  end
  return ids
end

