"""Best-practice advice: rules as data, evaluated over what a topology, requirements, a plan or a
finished run states.
"""
