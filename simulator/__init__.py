"""A local server that speaks the Messages API from a script, batches included, with faults: for
tests, benchmarks and crash demonstrations. Nothing starts it but `server.Simulator` and
`python -m holdfast.simulator`, and every answer says that it is scripted.
"""
