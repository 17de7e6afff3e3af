"""Studies: one base and variants of it, under the same load, in one table with the confidence of
each difference.

A study file (`kind = "study"`) has either `[light]`, the light load on a modelled array, or a plan,
which is carried out on real storage or by the engine on a modelled array. Variants are named, or
the product of axes; each changes keys of the base.
"""
