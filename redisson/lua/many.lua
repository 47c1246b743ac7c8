-- Does for many what a script does for one, which stands above as a function: to begin a script takes Redis as long as a small one.
-- KEYS and ARGV of each, one after the other; the last two ARGV are how many there are, and publish or spublish
-- Answers for each what the script does: its first value, one more than a number, and 0 where something else is at a key. Another error
-- leaves some done and says nothing of any.
local answers, n = {}, tonumber(ARGV[#ARGV - 1])
local keys, args = #KEYS / n, (#ARGV - 2) / n
for i = 1, n do
  local own = {unpack(ARGV, (i - 1) * args + 1, i * args)}
  own[args + 1] = ARGV[#ARGV]
  local ok, said = pcall(one, {unpack(KEYS, (i - 1) * keys + 1, i * keys)}, own)
  if ok then
    answers[i] = type(said) == 'table' and said[1] or said + 1
  elseif string.find(type(said) == 'table' and said.err or said, 'WRONGTYPE', 1, true) then
    answers[i] = 0
  else
    error(said, 0)
  end
end
return answers
