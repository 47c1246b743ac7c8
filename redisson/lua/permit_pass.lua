-- Takes a member who waits no more out of the wake list of a semaphore; see pass. KEYS[4] wake list or nothing   ARGV[1] member
-- Answers {1}.
if KEYS[4] then
  local free = count(levels[1]) or 0
  pass(KEYS[4], ARGV[1], math.max(free, 0), levels[1].taken, ARGV[#ARGV], levels[1].channel)
end
return {1}
