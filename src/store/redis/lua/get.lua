-- get.lua - a value.
-- KEYS: value
-- Answers version, time left in ms (-1: for ever) and data, or nothing.
local at = redis.call('HMGET', KEYS[1], 'version', 'data')

if not at[1] or not at[2] then
    return false
end
return {at[1], redis.call('PTTL', KEYS[1]), at[2]}
