-- Reads whose clients are.
-- KEYS[1] the own key of one of the clients   ARGV own keys of clients, all of this server's, last ARGV publish or spublish
-- Answers {1, {what each of them says, or nothing}}.
local said = {}
for i = 1, #ARGV - 1 do
  local size = redis.pcall('strlen', ARGV[i])
  local text = type(size) == 'number' and size > 0 and size <= 8192 and redis.pcall('get', ARGV[i])
  said[i] = type(text) == 'string' and text or ''
end
return {1, said}
