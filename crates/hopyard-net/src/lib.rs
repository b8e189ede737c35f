//! Kernel plumbing without policy: what Linux offers to make, change and read network objects.
