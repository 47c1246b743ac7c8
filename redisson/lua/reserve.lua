-- Takes several locks, in order: all of them or none, or as many as come before the first that can't be had. Above it, the scripts for one lock stand as
-- functions: look says whether somebody could have it, and takes, by kind, take it.
-- Safe to repeat, as those are: a holder that is there has its lock.
-- KEYS those of the locks   ARGV[1] '1' for all or none, ARGV[2] how many; for each its kind, how many KEYS and ARGV it has, and its ARGV;
-- last ARGV publish or spublish
-- Answers {1 if any is held or 0, how many are, twice what refused the next one as its script says it, and for each that is held the lease left in
-- ms and a token}. What refuses is {-2, 0} where something else is at the key.
local locks, keys, args = {}, 0, 2
for i = 1, tonumber(ARGV[2]) do
  local own, said = tonumber(ARGV[args + 2]), tonumber(ARGV[args + 3])
  local lock = {kind = ARGV[args + 1], KEYS = {unpack(KEYS, keys + 1, keys + own)}, ARGV = {unpack(ARGV, args + 4, args + 3 + said)}}
  lock.ARGV[said + 1] = ARGV[#ARGV]
  locks[i], keys, args = lock, keys + own, args + 3 + said
end

-- has reports whether an earlier attempt has taken a lock.
local function has(lock)
  local key, holder = lock.KEYS[1], lock.ARGV[1]
  if lock.kind == 'permit' then
    return redis.call('zscore', lock.KEYS[2], holder)
  end
  return redis.call('hexists', key, holder) == 1 or redis.call('hexists', key, holder .. ':write') == 1
end

-- ask is the answer of a script for one lock. Its errors are those of the whole only as long as nothing is taken.
local answer = {0, 0, 0, 0}
local function ask(script, lock, argv)
  local ok, said = pcall(script, lock.KEYS, argv)
  if not ok or type(said) == 'table' and said.err then
    local text = type(said) == 'table' and said.err or said
    if answer[2] == 0 and not string.find(text, 'WRONGTYPE', 1, true) then
      error(said, 0)
    end
    return {-2, 0}
  end
  return type(said) == 'number' and {1, said, 0} or said
end

for _, lock in ipairs(ARGV[1] == '1' and locks or {}) do
  local said = ask(look, lock, {lock.kind, lock.ARGV[7]})
  if said[1] ~= 1 and not (said[1] > -2 and has(lock)) then
    ask(function() return redis.call('hdel', lock.KEYS[1], '') end, lock) -- changes nothing; see scripts.go
    return {0, 0, said[1], said[2]}
  end
end
for i, lock in ipairs(locks) do
  local said = ask(takes[lock.kind], lock, lock.ARGV)
  if said[1] ~= 1 then
    answer[3], answer[4] = said[1], said[2]
    break
  end
  answer[1], answer[2] = 1, i
  answer[#answer + 1], answer[#answer + 2] = said[2], said[3]
end
return answer
