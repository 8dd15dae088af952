//! What a fact means: state, fold, plan, step. Pure: no async, no I/O, no clock, ordered maps.
