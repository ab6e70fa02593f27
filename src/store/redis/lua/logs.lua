-- logs.lua - the bounds of logs, for a list. Changes nothing.
-- KEYS: logs
-- Answers for each as log_span.lua has it; "" where the key is no log.
local call = redis.call
local answer = {}

--include log_span
for i = 1, #KEYS do
    local len = redis.pcall('XLEN', KEYS[i])

    answer[i] = type(len) == 'number' and log_span(KEYS[i]) or ''
end
return answer
