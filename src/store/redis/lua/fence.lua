-- fence.lua - the next fence of the database: max(watermark + 1, time in us).
-- Part of other scripts. Wants `call`; `time` is what TIME answered.
local format = string.format

-- Numbers are exact below 2^53, and the year 2255.
local function int(number)
    return format('%.0f', number)
end

local function next_fence(key, time)
    local fence = time[1] * 1000000 + time[2]
    local last = call('GETSET', key, int(fence))
    local least = last and tonumber(last)

    if least and least >= fence then
        if least >= 9007199254740991 then
            call('SET', key, last)
            error('-USEDUP the fences of this database are used up')
        end
        fence = least + 1
        call('SET', key, int(fence))
    end
    return int(fence)
end
