"""Files of other test tools: read into plans and run folders, and written again.

What comes from outside is never trusted.
"""
