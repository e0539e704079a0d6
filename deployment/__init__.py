"""Where runs live: settings, store, logs, the connection to Temporal, the embedded server. It knows
the vocabulary, and no rule.
"""
