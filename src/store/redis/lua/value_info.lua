-- value_info.lua - version, expiry and length of values.
-- KEYS: value...
-- Answers version, time left in ms (-1: for ever) and length for each; a version
-- of "0" when there is none.
local call = redis.call
local heads = {}

for i, key in ipairs(KEYS) do
    local version = redis.pcall('HGET', key, 'version')

    if type(version) ~= 'string' then
        version = '0'
    end
    heads[3 * i - 2] = version
    heads[3 * i - 1] = call('PTTL', key)
    heads[3 * i] = version ~= '0' and call('HSTRLEN', key, 'data') or 0
end
return heads
