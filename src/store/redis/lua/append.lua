-- append.lua - adds an entry to a log.
-- KEYS: log fence
-- ARGV: keep data
-- Answers its position. If its time differs from that, the entry has it too: a
-- position may run ahead of the clock.
local call = redis.call

--include fence
local time = call('TIME')
local us = int(time[1] * 1000000 + time[2])
local position = next_fence(KEYS[2], time)

if position == us then
    call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], position .. '-0', 'd',
         ARGV[2])
else
    call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], position .. '-0', 'd',
         ARGV[2], 't', us)
end
return position
