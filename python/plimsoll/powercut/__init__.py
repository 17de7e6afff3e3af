"""Does this storage lie about flush?

Durable work that a witness on another machine hears of, and an audit after the power came back.
"""
