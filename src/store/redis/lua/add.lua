-- add.lua - adds to a decimal integer and keeps its expiry.
-- KEYS: value fence
-- ARGV: delta publish
-- Answers OK and the sum, or INVALID and why. The sum is read back as text,
-- for as a number it may lose digits.
local call = redis.call

--include fence
--include tell_topic
-- First: it can fail, and then nothing has changed.
local version = next_fence(KEYS[2], call('TIME'))
local sum = redis.pcall('HINCRBY', KEYS[1], 'data', ARGV[1])

if type(sum) == 'table' and sum.err then
    if sum.err:find('not an integer') then
        return {18, 'the value is not an integer'}
    elseif sum.err:find('overflow') then
        return {18, 'the sum is out of range'}
    end
    return sum
end

call('HSET', KEYS[1], 'version', version)
tell_topic(ARGV[2], KEYS[1], 'changed ' .. version)
return {0, call('HGET', KEYS[1], 'data')}
