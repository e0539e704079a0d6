"""Make functions tools, find all there are, and run one so that nothing it does or meets
harms the worker.
"""
