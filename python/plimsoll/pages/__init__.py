"""The page kit that every HTML document shares.

Sheets, sections, tables, and the script of the charts.
"""
