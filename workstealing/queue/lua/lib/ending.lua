-- Tell how a task has ended: outcomes begin with that, unless it is done. A dead letter has
-- its envelope beside its outcome.
local function ending(outcome, envelope)
  return string.match(outcome, '^{"state":"(%a+)"') or envelope and 'dead' or 'done'
end
