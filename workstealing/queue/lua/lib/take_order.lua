--- needs: unusual, token, take
--- needs rarely: take_turns
-- In which order a worker looks for tasks: urgent ones first, and of each priority lines and
-- lists in turn, so that neither keeps the other waiting. One exchange in sixteen begins with
-- low tasks, and one with normal ones: what is urgent does not stop them for good.
local lists = 0            -- bits: a deque, and an inbox that is normal, urgent, low
local has_loads, has_bell, has_tasks = false, false, true
local draw                 -- 0 to 65535; tells what to begin with

-- See which lists are not empty, and what else there is for a worker that finds nothing in
-- them; tell whether there is anything to look for.
local function has_lists(has_lines)
  --- uses: inboxes, deque, loads, bell, task
  local normal = inboxes[2]
  -- What is odd may have come back to an inbox since the look at what is rare.
  if is_odd then rare_lists = 4 * redis.call('EXISTS', urgent, low, low) end
  local there = redis.call('EXISTS', deque, normal, normal, loads, loads, loads, loads,
    bell, bell, bell, bell, bell, bell, bell, bell,
    task, task, task, task, task, task, task, task, task, task, task, task, task, task, task, task)
  lists = there % 4 + rare_lists
  has_loads, has_bell, has_tasks = there % 8 >= 4, there % 16 >= 8, there >= 16
  return lists > 0 or has_lines
end

local function has_list(bit) return lists % (2 * bit) >= bit end

local function order_of_priorities(has_lines)
  -- Of one priority alone, no turns are taken.
  if not has_lines and (lists < 4 or lists == 4 or lists == 8) then return {0, 1, 2} end
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
  if priority == 1 and has_list(1) then take_from(deque, true) end
  local bits = {4, 2, 8}
  if has_list(bits[priority + 1]) then take_from(inboxes[priority + 1], false) end
  if has_lines and not lines_come_first then take_turns(priority) end
end
