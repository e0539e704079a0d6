"""What makes a function a tool, finds all there are, and runs one so that nothing it does or meets
harms the worker.
"""
