"""Run folders as one archive that a receiver can check, with names taken out where the sender wants
that.
"""
