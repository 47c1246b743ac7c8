-- Removes an object with all of its keys. Safe to repeat.
-- Answers {how many of the keys there were}.
return {redis.call('del', unpack(KEYS))}
