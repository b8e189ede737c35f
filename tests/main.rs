//! Privileged tests: real namespaces, real traffic, the real program.
