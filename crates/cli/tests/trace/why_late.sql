-- Why was this request late? Each late request, with what every best-effort tenant of its GPU did meanwhile: how long it was
-- still on the GPU, how often it was stopped, and how long the slowest stop took.
WITH
  late AS (
    SELECT
      slice.id, slice.ts, slice.dur,
      extract_arg(slice.arg_set_id, 'debug.tenant') AS tenant,
      extract_arg(slice.arg_set_id, 'debug.gpu') AS gpu,
      extract_arg(slice.arg_set_id, 'debug.objective_ns') AS objective_ns
    FROM slice
    WHERE slice.category = 'request' AND extract_arg(slice.arg_set_id, 'debug.late')
  ),
  states AS (
    SELECT
      slice.ts, slice.dur, slice.category AS state,
      extract_arg(slice.arg_set_id, 'debug.tenant') AS tenant,
      extract_arg(slice.arg_set_id, 'debug.gpu') AS gpu,
      extract_arg(slice.arg_set_id, 'debug.took_ns') AS took_ns
    FROM slice
    WHERE slice.category IN ('running', 'stopping', 'stopped')
  )
SELECT
  late.ts, late.dur, late.tenant, late.objective_ns,
  states.tenant AS beside,
  SUM(iif(states.state = 'stopped', 0,
    min(late.ts + late.dur, states.ts + states.dur) - max(late.ts, states.ts))) AS on_gpu_ns,
  SUM(states.state = 'stopped') AS stops,
  MAX(states.took_ns) AS slowest_stop_ns
FROM late
JOIN states
  ON states.gpu = late.gpu AND states.ts < late.ts + late.dur AND states.ts + states.dur > late.ts
GROUP BY late.id, states.tenant
ORDER BY late.ts
