-- get_many.lua - values of one slot at one moment.
-- KEYS: value...
-- Answers version, time left in ms (-1: for ever) and data for each; or nothing for one
-- that is not there.
local call = redis.call
local values = {}

for i, key in ipairs(KEYS) do
    local at = call('HMGET', key, 'version', 'data')

    values[i] = at[1] and at[2] and {at[1], call('PTTL', key), at[2]}
end
return values
