"""The door of GitHub: reviews what an event names, and tells it there. Nothing of a pull request
is executed, and no setting is read from it.
"""
