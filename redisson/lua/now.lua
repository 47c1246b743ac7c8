-- Goes before the scripts that count by the clock of the server, in ms.
local clock = redis.call('time')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
