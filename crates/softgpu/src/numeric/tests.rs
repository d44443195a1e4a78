//! The numeric room against native arithmetic, brute force and exact references.
