-- rates.lua - rate limits as they are kept; draw.lua has their form.
-- KEYS: rates
-- Answers the time in us, and each rate; "" where there is none.
local time = redis.call('TIME')
local answer = {('%.0f'):format(time[1] * 1000000 + time[2])}

for i = 1, #KEYS do
    local rate = redis.pcall('GET', KEYS[i])

    answer[i + 1] = type(rate) == 'string' and rate or ''
end
return answer
