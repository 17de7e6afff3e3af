"""Development programs: they write pages and data of this repository and are not part of the
package.
"""
