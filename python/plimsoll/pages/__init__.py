"""The page kit that every HTML document shares: sheets, sections, tables, and the script of the charts."""
