-- fence.lua - the next fences of the database: from max(watermark + 1, time in
-- us) on. Part of other scripts. Needs `call`; `time` is the reply to TIME.
--include text_int

-- The first of `count` in a row, as a number. It is exact until the year 2255.
local function next_fences(key, time, count)
    local fence = time[1] * 1000000 + time[2]
    local last = call('GETSET', key, int(fence + count - 1))
    local least = last and tonumber(last)

    if least and least >= fence then
        if least > 9007199254740991 - count then
            call('SET', key, last)
            error('-USEDUP the fences of this database are used up')
        end
        fence = least + 1
        call('SET', key, int(least + count))
    end
    return fence
end

local function next_fence(key, time)
    return int(next_fences(key, time, 1))
end
