"""The solution document: runs and a description of the storage put together as the published
reviews of such solutions are.
"""
