-- Goes before a script that must change something once, however often it is sent.
-- The last key is the receipt. The last arguments are the receipt, the number of the request, the life of the receipt in ms, and the
-- command to publish with.
local receipt, number, life = ARGV[#ARGV - 3], ARGV[#ARGV - 2], ARGV[#ARGV - 1]
local seen, outcome = string.match(redis.call('get', receipt) or '', '^(%d+) (-?%d+)$')
if seen and tonumber(seen) >= tonumber(number) then
  return {seen == number and tonumber(outcome) or 0}
end
-- done notes what came of the request, and is its answer. A change that finds nothing to do is done, too, and so is an acquire that is
-- refused: a copy that is on its way must not find something later.
local function done(outcome)
  redis.call('set', receipt, string.format('%s %.0f', number, outcome), 'px', life)
  return {outcome}
end
