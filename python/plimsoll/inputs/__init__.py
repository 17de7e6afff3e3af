"""Reading what people write.

TOML with line numbers, schemas, mistakes, quantities, expressions, safe XML. Knows no domain.
"""
