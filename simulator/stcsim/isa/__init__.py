"""Instruction tables, programs and what each instruction computes; knows nothing of timing."""
