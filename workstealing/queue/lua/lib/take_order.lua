--- needs: token, take, take_turns
-- In which order a worker looks for tasks: urgent ones first, and of each priority lines and
-- lists in turn, so that neither keeps the other waiting. One exchange in sixteen begins with
-- low tasks, and one with normal ones: what is urgent does not stop them for good.
local lists = 0            -- that are not empty
local priorities_met = 0   -- that they are of
local draw                 -- 0 to 65535; tells what to begin with

-- Count the lists that are not empty; tell whether there is anything to look for. A key that
-- is named several times counts as often, so one command tells which of them are there.
local function has_lists(has_lines)
  --- uses: inboxes, deque
  local urgent, low = inboxes[1], inboxes[3]
  local number = redis.call('EXISTS', inboxes[2], deque, urgent, urgent, urgent,
    low, low, low, low, low, low)
  local normal_lists, others = number % 3, math.floor(number / 3)
  local number_of_others = others % 2 + math.floor(others / 2)
  lists = normal_lists + number_of_others
  priorities_met = number_of_others + (normal_lists > 0 and 1 or 0)
  return lists > 0 or has_lines
end

local function order_of_priorities(has_lines)
  if not has_lines and priorities_met < 2 then return {0, 1, 2} end
  -- Multiplied by this, tokens in any rhythm are spread evenly.
  draw = new_token() * 40503 % 65536
  local share = 65536 / 16
  if draw < share then return {2, 0, 1} end
  if draw < 2 * share then return {1, 0, 2} end
  return {0, 1, 2}
end

local function take_priority(priority, has_lines)
  --- uses: inboxes, deque
  -- Digits from the middle of a square: the last one of a draw is that of the token, which in
  -- a rhythm of two is always the same.
  local lines_come_first = has_lines and math.floor(draw * draw / 65536) % 2 == 0
  if lines_come_first then take_turns(priority) end
  if priority == 1 and lists_met < lists then take_from(deque, true) end
  if lists_met < lists then take_from(inboxes[priority + 1], false) end
  if has_lines and not lines_come_first then take_turns(priority) end
end
