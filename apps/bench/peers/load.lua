-- Requests of `bench compare --work serving` for wrk: the body is the file of the first argument.
-- Prints the figures as a line of JSON: requests per second, milliseconds, failed requests.
function init(args)
  local file = assert(io.open(args[1], "rb"))
  wrk.body = file:read("*a")
  file:close()
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('{"per_second": %.3f, "p50": %.4f, "p99": %.4f, "failed": %d}\n',
    summary.requests / summary.duration * 1e6, latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
