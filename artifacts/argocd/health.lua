-- Health of every kind of omni.texashpc.com, for Argo CD. It needs no libraries of Lua but the basic one.
-- Ready, Reconciling and Stalled mean the same for all kinds. Read with kstatus, as Flux does, the answers are
-- the same but for one: what waits for a person on purpose is Suspended here, not Degraded.

-- What such a wait is. "Degraded" instead ends a sync that waits for it: see how-to/gitops.md.
local waits_for_a_person = "Suspended"

local function answer(status, message)
  return { status = status, message = message }
end

local status = obj.status or {}

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function is(name)
  return conditions[name] ~= nil and conditions[name].status == "True"
end

-- What a condition says, with its reason in front: that is what the documentation is sorted by.
local function said(name, otherwise)
  local condition = conditions[name]
  if condition == nil then
    return otherwise
  end
  local text = condition.reason or ""
  if (condition.message or "") ~= "" then
    text = text .. ": " .. condition.message
  end
  if text == "" then
    return otherwise
  end
  return text
end

if obj.metadata.deletionTimestamp ~= nil then
  if is("DeletionBlocked") then
    return answer("Progressing", said("DeletionBlocked", "the deletion is blocked"))
  end
  if is("Ready") then
    return answer("Progressing", "the object is being deleted; the controller has not begun yet")
  end
  return answer("Progressing", said("Ready", "the object is being deleted"))
end

-- A new object has -1 here: no controller has seen it.
local seen = tonumber(status.observedGeneration) or -1
local generation = tonumber(obj.metadata.generation) or 0
if seen < 0 then
  return answer("Progressing", "no controller has looked at this object yet")
end
if seen < generation then
  return answer("Progressing", "the controller has not seen the last change yet (generation "
    .. tostring(generation) .. ", seen " .. tostring(seen) .. ")")
end

if is("Suspended") then
  local message = said("Suspended", "spec.suspend is set")
  local plan = status.plan
  if plan ~= nil and (plan.approved == nil or (plan.destructive or 0) > 0) then
    message = message .. "; the plan has " .. tostring(plan.creates or 0) .. " to create, "
      .. tostring(plan.updates or 0) .. " to update, " .. tostring(plan.destroys or 0) .. " to destroy"
  end
  return answer(waits_for_a_person, message)
end

if is("Stalled") then
  local reason = conditions["Stalled"].reason
  if reason == "AwaitingApproval" or reason == "Observing" then
    return answer(waits_for_a_person, said("Stalled"))
  end
  return answer("Degraded", said("Stalled", "nothing goes on until somebody acts"))
end

if is("Reconciling") then
  local reason = conditions["Reconciling"].reason
  if reason == "ClusterOnHold" or reason == "ClusterSuspended" then
    return answer(waits_for_a_person, said("Reconciling"))
  end
  return answer("Progressing", said("Reconciling", "the controller is at work"))
end

-- What waits for its turn in an OmniRolloutPolicy may wait for days: a sync must not hang on it.
if is("Ready") then
  if is("Held") then
    return answer("Healthy", said("Held") .. "; " .. said("Ready", ""))
  end
  if is("RolloutStopped") then
    return answer("Degraded", said("RolloutStopped"))
  end
  return answer("Healthy", said("Ready", ""))
end

return answer("Progressing", said("Ready", "the controller has not said yet whether the object is ready"))
